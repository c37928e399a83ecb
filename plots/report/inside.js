// From a point to its steps, its prompts, and their tokens. A mark of a figure or a row of a table opens its point
// here; a cell of a surface, the points whose steps had as many rows.
const inside = document.getElementById("inside") ? dataOf(document.getElementById("inside")) : null;
const CAN_OPEN = Boolean(inside);

const rowsOf = ({columns, rows}) => rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
const sumOf = (all, of) => all.reduce((sum, one) => sum + of(one), 0);
const groupsBy = (all, key) => {
    const groups = new Map();
    for (const one of all) groups.set(one[key], [...(groups.get(one[key]) || []), one]);
    return [...groups];
};

// A bar in a cell, behind its text.
const shareCell = (share, text) =>
    make("td", {class: "n share", style: `--share:${(100 * share).toFixed(1)}%`}, text);

// A table of cells: [title, of a row its text or element, is it a number].
const tableOf = (caption, columns, rows) => {
    const cell = ([, of, number], row) => {
        const value = of(row);
        return value instanceof HTMLTableCellElement ? value : make("td", number ? {class: "n"} : {}, value);
    };
    const table = make("table", {}, make("caption", {}, caption),
        make("thead", {}, make("tr", {}, ...columns.map(([title]) => make("th", {scope: "col"}, title)))),
        make("tbody", {}, ...rows.map((row) => make("tr", {}, ...columns.map((column) => cell(column, row))))));
    enhance(table);
    return make("div", {class: "scroll inside", role: "region", tabindex: 0, "aria-label": caption}, table);
};

let openPoint = () => false; // by its number, and if `rows` is known only steps of as many; number unknown: all
const insideView = () => {
    const steps = rowsOf(inside.steps), prompts = rowsOf(inside.prompts);
    const measured = points.filter((point) => steps.some((step) => step.point === point.number));
    const several = (key) => new Set(measured.map((point) => point[key])).size > 1;
    const named = (point) =>
        [point.label, ...["model", "dataset"].filter(several).map((key) => point[key])].join(", ");
    const pick = make("select", {}, make("option", {value: ""}, "all points"),
        ...measured.map((point) => make("option", {value: point.number}, named(point))));
    const every = make("button", {type: "button"}), said = make("p", {class: "notes", role: "status"}),
          body = make("div", {class: "panels"});
    const part = (title, ...content) => make("div", {class: "panel"}, make("h3", {}, title), ...content);
    const button = (text, act) => {
        const made = make("button", {type: "button"}, text);
        made.addEventListener("click", act);
        return made;
    };
    let rows = null; // of the steps that are shown

    // Of some groups of steps together.
    const means = (groups) => {
        const n = sumOf(groups, (one) => one.steps),
              middle = (of) => sumOf(groups, (one) => one.steps * of(one)) / n;
        const ms = middle((one) => one.ms), written = middle((one) => one.emitted);
        return {n, rows: middle((one) => one.rows), ms, written, speed: written / ms};
    };
    const columns = [["rows", (x) => mean(x.rows), true], ["ms", (x) => mean(x.ms), true],
        ["tokens/ms", (x) => mean(x.speed), true]];
    const stepsOf = (number) => steps.filter((one) => one.point === number && (!rows || one.rows === rows));

    const showAll = () => {
        const all = measured.map((point) => ({point, ...means(stepsOf(point.number))})).filter((one) => one.n > 0);
        const most = greatest(all.map((one) => one.n));
        const table = tableOf("points and their steps",
            [
                ["method", ({point}) => button(named(point), () => openPoint(point.number, rows))],
                ["steps", (x) => shareCell(x.n / most, String(x.n)), true],
                ["tokens a step", (x) => mean(x.written), true], ...columns
            ],
            all);
        body.replaceChildren(part(rows ? `Points with steps of ${rows} rows` : "Points", table));
    };
    const showOne = (point) => {
        const own = stepsOf(point.number), all = sumOf(own, (one) => one.steps);
        const taken = groupsBy(own, "accepted").map(([accepted, some]) => ({accepted, ...means(some)}));
        const texts = prompts.filter((one) => one.point === point.number);
        const percent = (x) => `${x.n}, ${(100 * x.n / all).toFixed(0)}%`;
        const label = (one) => `${one.prompt}${one.turn ? `, turn ${one.turn + 1}` : ""}`;
        const opener = (x) => button(label(x), () => showText(point.number, x.prompt, x.turn));
        body.replaceChildren(
            part(rows ? `Its steps of ${rows} rows` : "Its steps, by the guesses that they accepted",
                tableOf("its steps",
                    [
                        ["accepted", (x) => String(x.accepted), true],
                        ["steps", (x) => shareCell(x.n / all, percent(x)), true], ...columns
                    ],
                    taken.sort((a, b) => a.accepted - b.accepted))),
            part("Its prompts",
                tableOf("its prompts",
                    [
                        ["prompt", (x) => hasText(point.number, x.prompt) ? opener(x) : label(x)],
                        ["S", (x) => mean(x.S), true], ["steps", (x) => shown(x.steps), true],
                        ["ms", (x) => mean(x.ms), true],
                        ["speedup", (x) => known(x.speedup) ? mean(x.speedup) : "", true]
                    ],
                    texts)));
        if (!texts.length) body.lastChild.remove();
    };
    const fill = () => {
        const point = measured.find((one) => String(one.number) === pick.value);
        every.hidden = !rows;
        every.textContent = `steps of ${rows} rows only: show all`;
        if (!point) showAll();
        else showOne(point);
        body.firstChild.classList.toggle("only", body.children.length === 1);
        const own = means(measured.filter((one) => !point || one === point).flatMap((one) => stepsOf(one.number)));
        const which = `${counted(own.n, "step")}${rows ? ` of ${rows} rows` : ""}`;
        said.textContent = `${which}: ${mean(own.written)} tokens and ${mean(own.ms)} ms a step` +
            (point ? `; ${counted(point.prompts, "prompt")}. A prompt's name opens its tokens, beside those of ` +
                     "its baseline." : ".");
    };
    // Where no step had as many rows, the nearest number that some had.
    const nearest = (wanted) => {
        const far = (x) => Math.abs(Math.log(x / wanted));
        return steps.reduce((best, {rows: x}) => x > 0 && (!best || far(x) < far(best)) ? x : best, 0);
    };
    const set = (number, wanted) => {
        pick.value = number || "";
        rows = wanted ? nearest(wanted) : null;
        fill();
        if (rows && rows !== wanted) said.textContent = `No step here had ${wanted} rows. ${said.textContent}`;
    };
    openPoint = (number, wanted, prompt) => {
        set(number, wanted);
        remember({point: number, rows: wanted, at: "Steps-and-prompts"}, true);
        if (prompt && showText(number, prompt)) return;
        showPlace("Steps-and-prompts");
        pick.focus({preventScroll: true});
    };
    pick.addEventListener("input", () => {
        remember({point: pick.value, at: "Steps-and-prompts"}, true);
        fill();
    });
    every.addEventListener("click", () => {
        rows = null;
        remember({rows: ""});
        fill();
    });
    document.getElementById("inside").after(
        make("div", {class: "tokens"}, make("label", {}, "point", pick), every, said, body));
    restorers.push(() => set(state.get("point"), Number(state.get("rows"))));
    set("", null);
};
if (inside) insideView();
if (location.hash.includes("=")) restore();
