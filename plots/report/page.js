// The page without its figures: tables that sort, filters over all of it, tips. Without this script the
// tables are the same, in the order of the store.
"use strict";

// An element with attributes and children; texts are always text, never markup.
const make = (tag, attributes = {}, ...children) => {
    const drawn = /^(svg|g|path|rect|circle|line|text|title)$/.test(tag);
    const element =
        drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
};
const dataOf = (element) => JSON.parse(element.querySelector("script").textContent);
const main = document.getElementById("main");
const points = dataOf(document.getElementById("points")).map(([
    number, model, dataset, method, label, prompts, passes, samples, disturbed, conditions, doubt
]) => ({number, model, dataset, method, label, prompts, passes, samples, disturbed, conditions, doubt}));
const chosen = {}; // by the filters: model, dataset, method; "" or absent: all
const known = (x) => x !== null && x !== undefined;
const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// --- the address -----------------------------------------------------------------------------------------

// The address has a reader's choices after its '#': filters, the order of a table, the mark, point, prompt and
// token that are open, and the place. Who opens that address sees the same. What opens something can be taken
// back by the browser's button.
let state = new URLSearchParams();
const restorers = []; // each shows its part of the state
const remember = (changes, opens) => {
    for (const [key, value] of Object.entries(changes)) {
        if (known(value) && value !== "") state.set(key, value);
        else state.delete(key);
    }
    history[opens ? "pushState" : "replaceState"](null, "", `#${state}`);
};
const showPlace = (id) => {
    const element = document.getElementById(id);
    if (element) element.scrollIntoView({block: "start", behavior: "instant"});
};
const restore = () => {
    const hash = location.hash.slice(1);
    state = new URLSearchParams(hash.includes("=") ? hash : "");
    for (const show of restorers) show();
    if (state.has("at")) showPlace(state.get("at"));
};
addEventListener("popstate", restore);

// --- tips ------------------------------------------------------------------------------------------------

const tip = make("div", {id: "tip", role: "tooltip", hidden: ""});
const heard = make("div", {class: "heard", role: "status", "aria-live": "polite"});
document.body.append(tip, heard);

// Shows a title and pairs of names and values near a box of the screen; `aloud`: also to a screen reader.
const showTip = (title, pairs, box, aloud) => {
    pairs = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
    tip.replaceChildren(make("b", {}, title),
        make("dl", {},
            ...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])));
    tip.hidden = false;
    const size = tip.getBoundingClientRect(), gap = 10;
    const left = Math.min(Math.max(4, box.left), innerWidth - size.width - 4);
    const top = box.bottom + gap + size.height < innerHeight ? box.bottom + gap : box.top - gap - size.height;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
    if (aloud) heard.textContent = [title, ...pairs.map((pair) => pair.join(" "))].join(", ");
};
const hideTip = () => {
    tip.hidden = true;
};
addEventListener("scroll", hideTip, {passive: true});
addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
});

// n and the conditions of some points, where they agree, and how much of them was disturbed.
const about = (some) => {
    if (!some.length) return [];
    const range = (key) => {
        const all = some.map((point) => point[key]), low = Math.min(...all), high = Math.max(...all);
        return low === high ? `${low}` : `${low} to ${high}`;
    };
    const samples = some.reduce((sum, point) => sum + point.samples, 0);
    const disturbed = some.reduce((sum, point) => sum + point.disturbed, 0);
    const same = some.every((point) => point.conditions === some[0].conditions);
    return [
        [
            "n",
            `${range("prompts")} prompts, ${range("passes")} passes`.replace(
                /\b1 (prompt|passe)s/g, (_, word) => `1 ${word.replace("passe", "pass")}`)
        ],
        [
            "disturbed",
            disturbed ? `${disturbed} of ${counted(samples, "sample")}` :
                        `none of ${counted(samples, "sample")}`
        ],
        ["conditions", same ? some[0].conditions : null]
    ];
};

// --- tables ----------------------------------------------------------------------------------------------

const order = (a, b) => {
    const x = parseFloat(a), y = parseFloat(b);
    if (!isNaN(x) && !isNaN(y)) return x - y;
    if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
    return a.localeCompare(b);
};

const sortBy = (table, column) => {
    const heads = [...table.tHead.rows[0].cells], head = heads[column];
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    const text = (row) => row.cells[column].textContent;
    table.tBodies[0].append(...rows.sort((a, b) => (up ? 1 : -1) * order(text(a), text(b))));
    return up;
};
restorers.push(() => {
    const [, name, column, up] = /^(.*)\.(\d+)\.(up|down)$/.exec(state.get("sort")) || [];
    const table = [...document.querySelectorAll("table.rows")].find((one) => one.caption.textContent === name);
    if (table && table.tHead.rows[0].cells[column])
        while (sortBy(table, Number(column)) !== (up === "up")) continue;
});

// A dot for the value and a line for its interval, on the scale of the column.
const drawSpans = (table, column) => {
    const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
    const all = cells.map((cell) => (cell.textContent.match(/[\d.]+/g) || []).map(Number));
    const most = Math.max(1.2, ...all.flat());
    const place = (x) => `${(100 * x / most).toFixed(1)}%`;
    cells.forEach((cell, i) => {
        const [value, low = value, high = value] = all[i];
        if (value === undefined) return;
        cell.append(make("span", {
            class: "span",
            "aria-hidden": "true",
            style: `--from:${place(low)};--to:${place(high)};--at:${place(value)};--one:${place(1)}`
        },
            make("u"), make("i"), make("b")));
    });
};

// The point of a row of a table that numbers its points.
const pointOf = (row, names) => {
    const column = names.indexOf("point");
    return column < 0 ? null : points.find((point) => point.number === Number(row.cells[column].textContent));
};

const tellRow = (row, names, aloud) => {
    const point = pointOf(row, names);
    if (!point) return;
    const speedup = names.indexOf("speedup");
    showTip(`${point.label}`,
        [
            ["on", `${point.model}, ${point.dataset}`],
            ["speedup", speedup < 0 ? null : row.cells[speedup].textContent], ...about([point]),
            ["in doubt", point.doubt], ["click, Enter", CAN_OPEN && "its steps, prompts, tokens"]
        ],
        row.cells[Math.max(0, names.indexOf("method"))].getBoundingClientRect(), aloud);
};

// The rows are one stop of the tab key; arrows go through them.
const walkRows = (table, names) => {
    const body = table.tBodies[0];
    const visible = () => [...body.rows].filter((row) => !row.hidden);
    if (body.rows[0]) body.rows[0].tabIndex = 0;
    body.addEventListener("keydown", (event) => {
        const rows = visible(), at = rows.indexOf(event.target.closest("tr"));
        const next = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1}[event.key];
        if (next === undefined || !rows[next]) return;
        event.preventDefault();
        for (const row of body.rows) row.removeAttribute("tabindex");
        rows[next].tabIndex = 0;
        rows[next].focus();
    });
    const open = (event) => {
        const row = event.target.closest("tr"), point = pointOf(row, names), prompt = names.indexOf("prompt");
        event.preventDefault();
        if (!point || String(getSelection())) return; // text that is being copied
        openPoint(point.number, "", prompt < 0 ? "" : row.cells[prompt].textContent);
    };
    body.addEventListener("click", open);
    body.addEventListener("keydown", (event) => event.key === "Enter" && open(event));
    body.addEventListener("focusin", (event) => tellRow(event.target.closest("tr"), names, true));
    body.addEventListener("focusout", hideTip);
    body.addEventListener("pointerover", (event) => tellRow(event.target.closest("tr"), names, false));
    body.addEventListener("pointerleave", hideTip);
};

// Where there is little room (page.css), an interval goes under its value, and the method's cell also has
// its model and data.
const foldCell = (cell) => {
    const [, value, interval, mark] = /^(\S+) (\[[^\]]*\])(.*)$/.exec(cell.textContent) || [];
    if (interval) cell.replaceChildren(`${value}${mark} `, make("span", {class: "interval"}, interval));
};
const nameData = (row, names) => {
    const point = pointOf(row, names), differs = (key) => points.some((other) => other[key] !== points[0][key]);
    const several = ["model", "dataset"].filter(differs);
    if (point && several.length) row.cells[0].dataset.of = several.map((key) => point[key]).join(", ");
};

// Makes a table sort. The method of a point comes first, and stays in sight when the rest is scrolled.
const enhance = (table) => {
    const titles = [...table.tHead.rows[0].cells].map((head) => head.textContent);
    const method = titles.includes("point") ? titles.indexOf("method") : -1;
    for (const row of method < 0 ? [] : table.rows) {
        row.prepend(row.cells[method]);
        row.cells[0].classList.add("fixed");
    }
    const heads = [...table.tHead.rows[0].cells], names = heads.map((head) => head.textContent);
    heads.forEach((head, column) => {
        const button = make("button", {type: "button"}, head.textContent);
        button.addEventListener("click", () => {
            const up = sortBy(table, column);
            const sort = `${table.caption.textContent}.${column}.${up ? "up" : "down"}`;
            if (table.matches(".rows")) remember({sort});
        });
        head.replaceChildren(button);
        head.setAttribute("aria-sort", "none");
        const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
        if (!cells.some((cell) => cell.className === "n")) return;
        for (const cell of [head, ...cells]) cell.classList.add("n"); // "-" as well
    });
    for (const row of table.tBodies[0].rows) {
        [...row.cells].forEach(foldCell);
        if (method >= 0) nameData(row, names);
    }
    if (names.includes("speedup")) drawSpans(table, names.indexOf("speedup"));
    if (names.includes("point") && points.length) walkRows(table, names);
    table.names = names;
};

// --- filters ---------------------------------------------------------------------------------------------

const rowPasses = (row, names, words) => {
    for (const key of ["model", "dataset"]) {
        const column = names.indexOf(key);
        if (column >= 0 && chosen[key] && row.cells[column].textContent !== chosen[key]) return false;
    }
    const column = names.indexOf("method"), point = pointOf(row, names);
    if (column >= 0 && chosen.method) {
        const method = point ? point.method : row.cells[column].textContent.split(/[ :]/)[0];
        if (method !== chosen.method) return false;
    }
    const text = row.textContent.toLowerCase();
    return words.every((word) => text.includes(word));
};

const filterTables = () => {
    const words = (chosen.words || "").toLowerCase().split(/\s+/);
    for (const table of document.querySelectorAll("table.rows")) {
        for (const row of table.tBodies[0].rows) row.hidden = !rowPasses(row, table.names, words);
        const first = [...table.tBodies[0].rows].find((row) => !row.hidden);
        if (first && table.querySelector("tr[tabindex]")) {
            table.querySelector("tr[tabindex]").removeAttribute("tabindex");
            first.tabIndex = 0;
        }
    }
    const kept = points.filter(
        (point) => ["model", "dataset", "method"].every((key) => !chosen[key] || point[key] === chosen[key]));
    return `${kept.length} of ${counted(points.length, "point")}`;
};

const FILTERS = ["model", "dataset", "method", "words"];
const addFilters = () => {
    const form = make("form", {id: "filters", role: "search", "aria-label": "filters"});
    const status = make("span", {role: "status"});
    const apply = () => {
        status.textContent = filterTables();
        document.dispatchEvent(new Event("filtered"));
    };
    const add = (key, field) => {
        field.addEventListener("input", () => {
            chosen[key] = field.value;
            remember({[key]: field.value});
            apply();
        });
        form.append(make("label", {}, key === "words" ? "find in tables" : key, field));
    };
    for (const key of ["model", "dataset", "method"]) {
        const values = [...new Set(points.map((point) => point[key]))].sort();
        if (values.length < 2) continue;
        add(key,
            make("select", {name: key}, make("option", {value: ""}, "all"),
                ...values.map((value) => make("option", {value}, value))));
    }
    add("words", make("input", {type: "search", name: "words"}));
    const reset = make("button", {type: "reset"}, "show all");
    form.addEventListener("reset", () => {
        for (const key in chosen) delete chosen[key];
        remember(Object.fromEntries(FILTERS.map((key) => [key, ""])));
        apply();
    });
    restorers.push(() => {
        const differ = FILTERS.filter(
            (key) => form.elements[key] && (chosen[key] || "") !== (state.get(key) || ""));
        for (const key of differ) form.elements[key].value = chosen[key] = state.get(key) || "";
        if (differ.length) apply();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(reset, status);
    main.prepend(form);
    status.textContent = filterTables();
};

// --- the page --------------------------------------------------------------------------------------------

for (const table of document.querySelectorAll("table.rows")) enhance(table);
if (points.length) addFilters();
const contents = document.querySelector("nav details");
if (contents && innerWidth < 1056) contents.open = false;
addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details.about")) details.open = true;
});

// The contents mark the section that is being read, and keep the rest of the address.
document.querySelectorAll("nav a").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    const at = decodeURIComponent(link.hash.slice(1));
    remember({at}, true);
    showPlace(at);
    document.getElementById(at).setAttribute("tabindex", -1);
    document.getElementById(at).focus({preventScroll: true});
}));
const links = new Map(
    [...document.querySelectorAll("nav a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id).setAttribute("aria-current", "true");
    }
}, {rootMargin: "-15% 0px -75% 0px"});
for (const id of links.keys())
    if (document.getElementById(id)) watch.observe(document.getElementById(id));
