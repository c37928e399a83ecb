// A reader of the report, for report_long_test.c: does what one does with mouse and keys, and writes every
// fault to the console.
"use strict";
const faults = [];
const check = (is, what) => {
    if (!is) faults.push(what);
};
const same = (got, wanted, what) => check(JSON.stringify(got) === JSON.stringify(wanted),
    `${what}: wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const press = (element, key) =>
    element.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
const tipText = () => (tip.hidden ? "" : tip.textContent);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

// Each column of each table, up and down, against a slow order of its own.
const sorts = () => {
    for (const table of all("table.rows")) {
        const rows = () => all("tbody tr", table), before = rows().length;
        all("th button", table).forEach((button, column) => {
            const text = () => rows().map((row) => row.cells[column].textContent);
            for (const up of [true, false]) {
                button.click();
                const name = `${table.caption.textContent}, ${button.textContent}, ${up ? "up" : "down"}`;
                same(button.parentElement.getAttribute("aria-sort"), up ? "ascending" : "descending", name);
                const numbers = text().map(parseFloat).filter((x) => !isNaN(x));
                same(numbers, [...numbers].sort((a, b) => (up ? a - b : b - a)), name);
                const words = text().filter((word) => isNaN(parseFloat(word)));
                same(words, [...words].sort((a, b) => (up ? 1 : -1) * a.localeCompare(b)), name);
            }
        });
        same(all("th[aria-sort=descending]", table).length, all("th button", table).length ? 1 : 0,
            "sorted columns");
        same(rows().length, before, "rows after sorting");
    }
};

// Every value of every filter: shown are the rows that hold it, and the panels that don't name another.
const filters = async () => {
    const form = document.getElementById("filters");
    if (!points.length) return check(!form, "filters without points");
    const table = all("#Points table")[0];
    for (const select of all("select", form)) {
        for (const value of [...select.options].map((option) => option.value).filter(Boolean)) {
            select.value = value;
            select.dispatchEvent(new Event("input", {bubbles: true}));
            const kept = points.filter((point) => point[select.name] === value);
            const shownRows = all("tbody tr", table).filter((row) => !row.hidden);
            same(shownRows.length, kept.length, `rows of ${select.name} ${value}`);
            check(
                form.textContent.includes(`${kept.length} of ${points.length} points`), `status of ${value}`);
            const bars = all("#speedup .panel").filter((panel) => !panel.hidden);
            check(bars.length > 0, `no speedup of ${select.name} ${value}`);
            if (select.name !== "method")
                for (const panel of bars)
                    check(
                        panel.textContent.includes(value), `a panel of another ${select.name} than ${value}`);
        }
        all("button", form)[0].click();
    }
    form.elements.words.value = "Kangaroo eta=0.6";
    form.elements.words.dispatchEvent(new Event("input", {bubbles: true}));
    for (const row of all("tbody tr", table))
        same(!row.hidden, /kangaroo.*eta=0.6/.test(row.textContent), `found: ${row.textContent}`);
    all("button", form)[0].click();
    await wait(100);
    check(all("tbody tr", table).every((row) => !row.hidden), "rows after 'show all'");
    check(all("figure").every((figure) => !figure.hidden), "figures after 'show all'");
};

// A table of points is one stop of the tab key; arrows move in it, and each row tells n and conditions.
const rowsByKeys = () => {
    const table = all("#Points table")[0];
    if (!table) return;
    same(all("tr[tabindex]", table).length, 1, "tab stops of the table's rows");
    const first = all("tr[tabindex]", table)[0];
    first.focus();
    press(first, "ArrowDown");
    same(document.activeElement.rowIndex, first.rowIndex + 1, "row after an arrow");
    for (const word of ["3 prompts", "disturbed", "samples"])
        check(tipText().includes(word), `a row's tip without ${word}`);
    press(document.activeElement, "End");
    same(document.activeElement.rowIndex, table.rows.length - 1, "row after End");
    press(document.activeElement, "Escape");
    same(tipText(), "", "a tip after Escape");
};

// At any width the table begins with what a reader looks for, and no cell of that is out of sight.
const firstColumns = () => {
    const table = all("#Points table")[0];
    if (!table) return;
    const heads = all("th", table.tHead), first = heads.slice(0, 4);
    same(first.map((head) => head.textContent), ["method", "S", "speedup", "same text"], "first columns");
    table.parentElement.scrollLeft = 0;
    const room = table.parentElement.getBoundingClientRect().right,
          right = first[3].getBoundingClientRect().right;
    check(right <= room, `the column 'same text' ends at ${right}, its table's frame at ${room}`);
    const row = table.tBodies[0].rows[0], {content} = getComputedStyle(row.cells[0], "::after");
    same(row.cells[0].dataset.of, pointOf(row, table.names).dataset, "a row's data");
    same(content !== "none", innerWidth < 640, `a row's data is shown at ${innerWidth}`);
};

// Every chart: its name, its marks by keys and by the pointer, and its numbers as a table.
const chartsByKeys = async () => {
    for (const figure of all("figure.chart")) {
        for (const panel of all(".panel", figure)) {
            panel.scrollIntoView();
            const svg = all("svg.plot", panel)[0],
                  name = `${figure.id}, ${panel.querySelector("h3").textContent}`;
            for (let tries = 0; tries < 100 && svg.children.length < 3; tries++) await wait(50);
            check(svg.children.length > 2, `${name}: nothing is drawn`);
            check((svg.getAttribute("aria-label") || "").length > 20, `${name}: no label`);
            check(!/NaN|undefined|Infinity/.test(svg.outerHTML), `${name}: a place that is no number`);
            const first = seen.get(panel).spots[0];
            if (!first) continue;
            svg.focus();
            press(svg, "ArrowRight");
            check(tipText().length > 5 && heard.textContent.length > 5, `${name}: no tip by keys`);
            check(!/NaN|undefined|null/.test(tipText()), `${name}: ${tipText()}`);
            for (const key of ["End", "ArrowUp", "ArrowDown", "ArrowLeft", "Home"]) press(svg, key);
            svg.blur();
            const box = svg.getBoundingClientRect();
            svg.dispatchEvent(new PointerEvent("pointermove",
                {clientX: box.left + first.x, clientY: box.top + (first.box ? first.box[1] + 2 : first.y)}));
            check(tipText().length > 5, `${name}: no tip by the pointer`);
            svg.dispatchEvent(new PointerEvent("pointerleave"));
            same(tipText(), "", `${name}: a tip after the pointer left`);
        }
        const numbers = all("details.numbers", figure)[0];
        numbers.open = true;
        await wait(50);
        const marks = dataOf(
            figure).panels.flatMap((panel) => panel.series)
                          .flatMap((series) => series.rows)
                          .filter((row) => row.length);
        same(all("tbody tr", numbers).length, marks.length, `${figure.id}: rows of its numbers`);
        numbers.open = false;
    }
};

// Texts token by token: each side's tokens are its text, keys go through them and through steps, a tip has the
// step's times, and two methods are of one prompt.
const tokensByKeys = async () => {
    const view = all("#Token-by-token .tokens")[0];
    if (!view) return check(!tokens.texts.length, "no view of the texts' tokens");
    const [prompt, ...picks] = all("select", view), words = all(".words", view);
    same(words.length, 2, "texts side by side");
    for (const {value} of [...prompt.options]) {
        prompt.value = value;
        prompt.dispatchEvent(new Event("input", {bubbles: true}));
        picks.forEach((pick, i) => {
            const text = tokens.texts.find(
                (one) => promptOf(one) === value && keyOf(one) === pick.value);
            same(words[i].textContent, text.pieces.join(""), `the text of ${pick.value}`);
        });
    }
    const side = words[0];
    side.focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "End", "Home"]) press(side, key);
    same(all(".here", side).length, 1, "tokens under the cursor");
    same(all(".here", side)[0], side.firstChild, "the token after Home");
    same(all(".twin", words[1])[0], words[1].firstChild, "the same token on the other side");
    if (picks[0].value !== picks[1].value)
        for (const word of ["A step of", "tokens a step", "forward", "ms a token"])
            check(all(".why-faster", view)[0].textContent.includes(word), `why one was faster, without ${word}`);
    for (const word of ["step", "1 of", "written by", "forward", "ms"])
        check(tipText().includes(word), `a token's tip without ${word}: ${tipText()}`);
    check(!/NaN|undefined|null/.test(tipText()), `a token's tip: ${tipText()}`);
    side.blur();
    same(tipText(), "", "a tip after the text was left");
    side.firstChild.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
    check(tipText().length > 5, "no tip of a token by the pointer");
    side.dispatchEvent(new PointerEvent("pointerleave"));
    check(view.textContent.includes("the same, token for token"), "texts that don't part");
};

// From a mark to the steps of its point, to its prompts, to their tokens; the address opens all of that again.
const opens = async () => {
    const svg = all("#speedup svg.plot").find((one) => !one.closest("[hidden]")), shownIn = (id) => all(`#${id} .tokens`)[0];
    if (!svg || !inside.steps.rows.length) return;
    svg.scrollIntoView();
    await wait(100);
    svg.focus();
    press(svg, "Home");
    press(svg, "Enter");
    const [pick] = all("select", shownIn("Steps-and-prompts")), number = Number(pick.value);
    check(number > 0, "Enter on a bar opens no point");
    same(all(".chosen", svg).length, 1, "marks that stay");
    const tables = all(".scroll.inside table");
    same(tables.map((table) => table.caption.textContent), ["its steps", "its prompts"], "tables of a point");
    const sum = all("tbody tr", tables[0]).reduce((n, row) => n + parseInt(row.cells[1].textContent, 10), 0);
    const {columns, rows} = inside.steps, at = (name) => columns.indexOf(name);
    same(sum, rows.filter((row) => row[at("point")] === number).reduce((n, row) => n + row[at("steps")], 0), "steps of a point");
    const button = all("td button", tables[1])[0];
    if (button) {
        button.click();
        same(all("select", shownIn("Token-by-token"))[1].value.split("/")[1], String(number), "the method of the tokens");
        press(all(".words")[0], "End");
    }
    const address = location.hash, place = pick.value;
    openPoint(null, 7);
    check(all(".scroll.inside table")[0].caption.textContent === "points and their steps", "steps of as many rows");
    check(location.hash.includes("rows=7"), "the address without the rows");
    all("#filters select, #filters input").forEach((field) => {
        field.value = field.options ? field.options[field.options.length - 1].value : "a";
        field.dispatchEvent(new Event("input", {bubbles: true}));
    });
    location.hash = address;
    await wait(100);
    same(pick.value, place, "the point of an address");
    check(all("#filters select, #filters input").every((field) => !field.value), "filters of an address that has none");
    if (button) same(all(".words")[0].lastChild.className.includes("here"), true, "the token of an address");
    location.hash = "#Verdict";
    await wait(100);
    same(pick.value, "", "a point that no address names");
};

// The surface's cells have the least time that the machine allows.
const floors = () => {
    const svg = all("#contexts svg.plot")[0];
    if (!svg) return;
    svg.focus();
    press(svg, "ArrowRight");
    for (const word of ["least, by reading and computing", "steps timed"])
        check(tipText().includes(word), `a cell's tip without ${word}`);
    check(svg.textContent.includes("\u2265"), "cells without a floor");
    svg.blur();
};

const structure = () => {
    for (const link of all("nav a"))
        check(document.getElementById(decodeURIComponent(link.hash.slice(1))), `a link to ${link.hash}`);
    same(all("h1").length, 1, "first headings");
    same(all("main").length, 1, "landmarks of the main part");
    for (const table of all("table"))
        check(table.caption && table.caption.textContent, "a table without a caption");
    for (const head of all("th")) check(head.scope, `a head without a scope: ${head.textContent}`);
    for (const field of all("input, select"))
        check(field.labels.length, `a field without a label: ${field.name}`);
    const ids = all("[id]").map((element) => element.id);
    same(new Set(ids).size, ids.length, "different ids");
    same(all("script[src], link, img, iframe").length, 0, "things to load");
};

(async () => {
    addEventListener("error", (event) => faults.push(event.message));
    await wait(300);
    structure();
    sorts();
    await filters();
    firstColumns();
    rowsByKeys();
    await chartsByKeys();
    floors();
    await tokensByKeys();
    await opens();
    const width = document.documentElement.scrollWidth;
    check(width <= innerWidth, `the page is ${width} pixels wide, its window ${innerWidth}`);
    for (const fault of faults) console.log(`fault: ${fault}`);
    console.log("the reader has done");
})();
