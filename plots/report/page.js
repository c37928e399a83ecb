// A table is sorted by a click on a column's head (again: the other way), and shows the rows that hold what
// is typed above it. Without this script the page is the same, in the order of the store.
"use strict";
for (const table of document.querySelectorAll("table.rows")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const text = (row, i) => row.cells[i].textContent;
    const compare = (a, b) => {
        const x = parseFloat(a), y = parseFloat(b);
        if (!isNaN(x) && !isNaN(y)) return x - y;
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        return a.localeCompare(b);
    };
    const sort = (head, i) => {
        const up = head.getAttribute("aria-sort") === "descending" || !head.hasAttribute("aria-sort");
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(text(a, i), text(b, i)));
        body.append(...rows);
    };
    heads.forEach((head, i) => {
        head.setAttribute("role", "button");
        head.tabIndex = 0;
        head.addEventListener("click", () => sort(head, i));
        head.addEventListener("keydown", (e) => {
            if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sort(head, i); }
        });
    });
    if (body.rows.length > 8) {
        const field = document.createElement("input");
        field.placeholder = "show rows that hold ...";
        field.setAttribute("aria-label", field.placeholder);
        field.addEventListener("input", () => {
            const words = field.value.toLowerCase().split(/\s+/);
            for (const row of body.rows) {
                const held = row.textContent.toLowerCase();
                row.hidden = !words.every((word) => held.includes(word));
            }
        });
        table.parentElement.before(field);
    }
}
for (const figure of document.querySelectorAll("figure"))
    figure.addEventListener("click", () => figure.classList.toggle("whole"));
