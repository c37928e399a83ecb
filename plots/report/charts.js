// The figures: what their columns are named decides what is drawn (draw.js):
//
//   label_x             a heat map            label_bar, speedup   bars, of a value and its interval
//   measured            predicted over it     label_bar            bars of stacked parts
//   mark, ceiling       dots                  otherwise            lines
//
// Pointer and arrow keys go from spot to spot of a panel; both show the same tip. A click, or Enter, opens the
// point or the steps of a spot (inside.js).

// --- panels ----------------------------------------------------------------------------------------------

// Names of columns in tips, and columns that tips leave out: places, and what a tip has another line for.
const NAMES = {
    n: "steps timed",
    ms: "milliseconds",
    token: "ms a token",
    floor: "least, by reading and computing"
};
const UNTOLD = new Set(("x y row scan low high law_low law_high doubtful mark ceiling ridge ridge_rows " +
    "label_bar label_method label_why point step_rows").split(" "));
const PARTS = [
    ["propose", "the method drafts"], ["forward", "the model runs"], ["verify", "tokens are accepted"],
    ["observe", "the method learns"], ["other", "all else"]
];
const KINDS = {
    heat: {draw: drawHeat, name: "heat map"},
    bars: {draw: drawBars, name: "bars"},
    parts: {draw: drawBars, name: "bars"},
    lines: {draw: drawLines, name: "chart"},
};
const total = (chart, row) => PARTS.reduce((sum, [part]) => sum + (row[chart.index[part]] || 0), 0);

// Finds by the names of its columns how a chart is drawn, and which columns are its value and interval. Rows
// after an empty one begin another line.
const understand = (chart) => {
    const index = Object.fromEntries(chart.columns.map((name, i) => [name, i])),
          has = (name) => index[name] !== undefined;
    const kind = has("label_x") ? "heat" : !has("label_bar") ? "lines" : has("speedup") ? "bars" : "parts";
    const value = {heat: 2, bars: index.speedup, lines: 1}[kind];
    Object.assign(
        chart, {index, kind, value, low: index.low ?? index.law_low, high: index.high ?? index.law_high});
    for (const series of chart.panels.flatMap((panel) => panel.series)) {
        series.rows.forEach((row, n) => {
            if (row.length) row.begins = n > 0 && !series.rows[n - 1].length;
        });
        series.rows = series.rows.filter((row) => row.length);
    }
};

// Whether a text names this model, dataset or method, as a word of its own.
const namesIt = (text, name) => {
    for (let at = text.indexOf(name); name && at >= 0; at = text.indexOf(name, at + 1))
        if (!/[\w.-]/.test(text[at - 1] || " ") && !/[\w.-]/.test(text[at + name.length] || " ")) return true;
    return false;
};
// Whether a text belongs to what the filter shows: it names the chosen one, or none of them.
const fits = (text, key) => {
    if (!chosen[key] || namesIt(text, chosen[key])) return true;
    return !points.some((point) => namesIt(text, point[key]));
};

// Whether a figure's title is about another method than the chosen one: "N-Grammys: tokens per call".
const isOfAnother = (title) => {
    const letters = (text) => text.toLowerCase().replace(/[^a-z]/g, ""),
          subject = letters(title.split(":")[0]);
    return Boolean(chosen.method) && subject !== letters(chosen.method) &&
        points.some((point) => letters(point.method) === subject);
};

class Panel {
    constructor(figure, chart, data) {
        const of = data.title.includes(": ") && !chart.y ? data.title.split(": ")[0] : chart.columns[1];
        this.subject = figure.querySelector("figcaption").textContent;
        Object.assign(this, {
            chart,
            data,
            column: chart.index,
            name: `${figure.id}.${chart.panels.indexOf(data)}`,
            spots: [],
            at: -1
        });
        this.names = {x: chart.x || chart.columns[0], y: chart.y || of};
        this.isSpeedup = /speedup/.test(this.names.y);
        this.svg =
            make("svg", {class: "plot", role: "application", "aria-roledescription": "chart", tabindex: 0});
        this.legend = make("ul", {class: "legend"});
        this.element = make("div", {class: "panel"}, make("h3", {}, data.title), this.legend, this.svg);
        this.svg.addEventListener("pointermove", (event) => this.point(event));
        this.svg.addEventListener("pointerdown", (event) => this.point(event));
        this.svg.addEventListener("click", () => this.open());
        this.svg.addEventListener("pointerleave", () => this.leave());
        this.svg.addEventListener("blur", () => this.leave());
        this.svg.addEventListener("keydown", (event) => this.key(event));
    }

    size(height) {
        this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
        this.svg.style.height = `${height}px`;
    }

    // The values of the panels that share an axis with this one: they are compared on one scale. Milliseconds
    // are shared by panels of one model, S and speedup by those whose titles begin with the same measure.
    get domain() {
        const {chart} = this,
              before = (mark) => (panel) => panel.title.split(mark)[0] === this.data.title.split(mark)[0];
        const shares = chart.kind === "parts"  ? before(", ") :
            chart.kind === "lines" && !chart.y ? before(": ") :
                                                 () => true;
        const rows =
            chart.panels.filter(shares).flatMap((panel) => panel.series).flatMap((series) => series.rows);
        if (chart.kind === "parts") return rows.map((row) => total(chart, row));
        const {published, floor, token} = chart.index,
              columns = [chart.value, chart.low, chart.high, published, floor, token];
        return rows.flatMap((row) => columns.map((at) => row[at]));
    }

    draw() {
        this.series = this.data.series.filter((series) => fits(series.name, "method"));
        this.element.hidden = !this.series.length || isOfAnother(this.subject) ||
            !fits(this.data.whole, "model") || !fits(this.data.whole, "dataset") ||
            !fits(this.data.whole, "method");
        this.width = Math.floor(this.element.clientWidth);
        if (this.element.hidden || !this.width) return;
        this.spots = [];
        this.at = -1;
        this.svg.replaceChildren();
        KINDS[this.chart.kind].draw(this);
        const chosen = this.spots[this.chosen];
        if (chosen) this.svg.append(make("g", {class: "chosen"}, this.frame(chosen)));
        this.legend.replaceChildren(...this.legendItems());
        this.svg.setAttribute("aria-label",
            `${this.data.title}: ${KINDS[this.chart.kind].name} of ${this.names.y} over ${this.names.x}, ` +
                `${counted(this.spots.length, "mark")}. Arrow keys read them, Enter opens one.`);
    }

    legendItems() {
        const {column, chart} = this,
                       any = (at) => this.series.some((series) => series.rows.some((row) => row[at] > 0));
        const entry = (name, ...picture) =>
            make("li", {}, make("svg", {viewBox: "0 0 24 11", "aria-hidden": "true"}, ...picture), name);
        const line = (name, dash) => make("path", {class: name, d: "M0 6H24", "stroke-dasharray": dash});
        const box = (n) => make("rect", {class: "bar", style: hue(n + 1), width: 24, height: 9, y: 1});
        const joined = [column.mark, column.measured, column.ceiling].every((at) => at === undefined);
        const seriesItem = (series) => {
            const dot = make("path", {class: "dots", d: markOf(series.mark)(12, 6, 3.4)});
            const ceiling = column.ceiling !== undefined && greatest(series.rows.map((row) => row[column.ceiling]));
            const item = entry(series.name, ceiling ? line("line roof", roofDash(ceiling)) :
                make("g", {style: hue(series.colour)},
                    ...(joined ? [line("line", dashOf(series.mark))] : []), dot));
            item.addEventListener("pointerenter", () => this.dim(series));
            item.addEventListener("pointerleave", () => this.dim(null));
            return item;
        };
        const items = [];
        if (chart.kind === "parts") items.push(...PARTS.map(([, name], n) => entry(name, box(n))));
        if (any(column.published))
            items.push(entry(
                "published, of another machine", make("path", {class: "level", d: MARKS[4](12, 6, 4)})));
        if (chart.kind === "heat") {
            if (any(column.floor))
                items.push(make("li", {}, "\u2265 the least that the machine allows"));
            if (this.ridge)
                items.push(
                    entry(`from ${this.ridge} rows on computing binds, not reading`, line("ridge", "")));
        }
        if (chart.kind !== "lines") return items;
        items.push(...this.series.map(seriesItem));
        if (column.token !== undefined)
            items.push(entry("from the time of a row up to that of a token",
                make("path", {class: "whisker stem", style: "--hue:#777777", d: "M12 10V2m-4 0h8"})));
        if (column.floor !== undefined)
            items.push(entry("at least, by reading and computing", line("one", "4 3")));
        const isStarred = (row) => row[column.doubtful] === 1;
        if (this.series.some((series) => series.rows.some(isStarred)) || any(column.mark)) {
            const hollow = make("path", {class: "dots doubted", d: MARKS[0](12, 6, 3.4)});
            items.push(entry("hollow: disturbed, or in doubt", make("g", {style: "--hue:#777777"}, hollow)));
        }
        return items;
    }

    dim(series) {
        for (const other of this.series)
            if (other.drawn) other.drawn.classList.toggle("dim", series !== null && other !== series);
    }

    // The numbers of a spot by their names: its value with its interval, and what else its row has.
    numbers(spot) {
        const {chart, names} = this;
        return chart.columns.flatMap((name, i) => {
            const x = spot.row[i];
            if (i === chart.value)
                return [[
                    chart.kind === "lines"    ? names.y :
                        chart.kind === "heat" ? "value" :
                                                name,
                    reach(x, spot.row[chart.low], spot.row[chart.high])
                ]];
            if (UNTOLD.has(name) || !known(x)) return [];
            if (name.startsWith("label_"))
                return [[brief(name === "label_x" ? names.x : names.y), chart.labels[x - 1]]];
            return [[brief(i === 0 ? names.x : NAMES[name] || name), shown(x)]];
        });
    }

    // The points that a spot is of: of the panel's model and dataset, and of the method or the label that the
    // spot names.
    pointsOf(spot) {
        const here = points.filter(
            (point) => namesIt(this.data.whole, point.model) && namesIt(this.data.whole, point.dataset));
        const named = here.filter((point) => point.label === spot.title);
        if (named.length) return named;
        return here.some((point) => namesIt(spot.title, point.method)) ?
            here.filter((point) => namesIt(spot.title, point.method)) :
            here;
    }

    // The reason for a spot's star, which a note under the figure gives, or for its mark.
    doubtOf(spot) {
        const {chart, column} = this, mark = isLost(this, spot.row) ? "grey or hatched: " : "*: ",
                       why = chart.notes.find((note) => note.startsWith(mark));
        if (spot.row[column.doubtful] > 0 && why) return why.slice(mark.length);
        return ["", "disturbed", "throttled"][spot.row[column.mark] || 0];
    }

    // A ring around a spot, or a frame around its box.
    frame(spot) {
        const [left, top, right, bottom] = spot.box || [],
                                 size = {width: right - left - 2, height: bottom - top - 2};
        return spot.box ? make("rect", {class: "cursor", x: left + 1, y: top + 1, ...size, rx: 3}) :
                          make("circle", {class: "cursor", cx: spot.x, cy: spot.y, r: 6});
    }

    // What a spot opens: a point by its number, or all steps of as many rows.
    targetOf(spot) {
        const {column} = this, rows = spot.row[column.step_rows], named = this.pointsOf(spot);
        if (!CAN_OPEN) return null;
        if (known(rows)) return {rows};
        const number = spot.row[column.point] ?? (named.length === 1 ? named[0].number : null);
        return known(number) ? {point: number} : null;
    }

    // The mark stays, and the address has it.
    choose(at) {
        for (const other of panels) {
            const had = other.chosen;
            other.chosen = other === this ? at : undefined;
            if (other !== this && known(had)) other.draw();
        }
        this.draw();
        this.at = at ?? -1;
    }

    open() {
        const spot = this.spots[this.at], {at} = this;
        if (!spot) return;
        const target = this.targetOf(spot);
        this.choose(at);
        hideTip();
        remember({spot: `${this.name}.${at}`, at: this.name.split(".")[0]}, true);
        if (target) openPoint(target.point, target.rows);
    }

    // Shows the tip of a spot at its place.
    tell(spot, aloud) {
        const {column, svg} = this;
        const screen = svg.getBoundingClientRect(), ratio = screen.width / this.width,
              [, top, , bottom] = spot.box || [0, spot.y, 0, spot.y];
        const place = {
            left: screen.left + ratio * spot.x + 8,
            top: screen.top + ratio * top,
            bottom: screen.top + ratio * bottom
        };
        const own = [...this.numbers(spot), ["in doubt", this.doubtOf(spot)]];
        const points = column.n === undefined ? about(this.pointsOf(spot)) : [];
        const target = this.targetOf(spot),
              opens = target && (target.rows ? "the steps of as many rows" : "its steps, prompts, tokens");
        showTip(spot.title, [...own, ...points, ["click, Enter", opens]], place, aloud);
        if (this.cursor) this.cursor.remove();
        this.svg.append(this.cursor = this.frame(spot));
    }

    leave() {
        if (this.cursor) this.cursor.remove();
        hideTip();
    }

    point(event) {
        const box = this.svg.getBoundingClientRect(), x = (event.clientX - box.left) * this.width / box.width,
              y = (event.clientY - box.top) * this.width / box.width;
        const isIn = ([left, top, right, bottom]) => x >= left && x < right && y >= top && y < bottom;
        const far = (spot) => {
            if (!spot.box) return Math.hypot(spot.x - x, spot.y - y);
            return isIn(spot.box) ? 0 : Infinity;
        };
        let best = -1;
        this.spots.forEach((spot, i) => {
            if (best < 0 || far(spot) < far(this.spots[best])) best = i;
        });
        if (best < 0 || far(this.spots[best]) > 45) {
            this.leave();
            return;
        }
        this.at = best;
        this.tell(this.spots[best], false);
    }

    // The spot above or below, by the place in a heat map, among bars, or on the next line.
    across(by) {
        const here = this.spots[this.at], {kind} = this.chart;
        if (!here) return 0;
        if (kind !== "lines")
            return this.at + by * (kind === "heat" ? -greatest(this.spots.map((spot) => spot.row[0])) : 1);
        const next =
            this.series[(this.series.indexOf(here.series) + by + this.series.length) % this.series.length];
        const distance = (spot) => spot.series === next ? Math.abs(spot.x - here.x) : Infinity;
        return this.spots.reduce(
            (best, spot, i) => distance(spot) < distance(this.spots[best]) ? i : best, 0);
    }

    key(event) {
        const last = this.spots.length - 1;
        if (event.key === "Enter") {
            event.preventDefault(); // of the field that gets the focus
            this.open();
        }
        const moves = {
            ArrowRight: () => this.at + 1,
            ArrowLeft: () => this.at - 1,
            ArrowDown: () => this.across(1),
            ArrowUp: () => this.across(-1),
            Home: () => 0,
            End: () => last
        };
        if (!moves[event.key] || last < 0) return;
        event.preventDefault();
        this.at = Math.min(last, Math.max(0, moves[event.key]()));
        this.tell(this.spots[this.at], true);
    }
}

// --- figures ---------------------------------------------------------------------------------------------

// The numbers of a figure as a table, made when a reader opens it.
const addNumbers = (figure, chart) => {
    const details = make("details", {class: "numbers"}, make("summary", {}, "The numbers"));
    details.addEventListener("toggle", () => {
        if (details.children.length > 1) return;
        const columns = chart.columns.filter((name) => !["x", "y", "row"].includes(name)),
              at = (name) => chart.index[name];
        const cell = (name, row) =>
            name.startsWith("label_") ? chart.labels[row[at(name)] - 1] || "" : shown(row[at(name)]);
        const title = figure.querySelector("figcaption").textContent;
        const body = make("tbody", {},
            ...chart.panels.flatMap(
                (panel) => panel.series.flatMap(
                    (series) => series.rows.map(
                        (row) => make("tr", {},
                            ...[panel.title, series.name].map((text) => make("td", {}, text)),
                            ...columns.map((name) => make("td", name.startsWith("label_") ? {} : {class: "n"},
                                               cell(name, row))))))));
        const table = make("table", {}, make("caption", {}, title),
            make("thead", {},
                make("tr", {},
                    ...["panel", "series", ...columns].map(
                        (name) => make("th", {scope: "col"}, name.replace("label_", ""))))),
            body);
        details.append(make("div",
            {class: "scroll", role: "region", tabindex: 0, "aria-label": `the numbers: ${title}`}, table));
        enhance(table);
    });
    figure.append(details);
};

// What every figure notes is told once, before them.
const figures = [...document.querySelectorAll("figure.chart")], charts = figures.map(dataOf);
const common =
    (charts[0] || {notes: []}).notes.filter((note) => charts.every((chart) => chart.notes.includes(note)));
const noted = (notes) => make("div", {class: "notes"}, ...notes.map((note) => make("p", {}, note)));
if (figures.length) figures[0].before(noted(common));

const panels = [], seen = new WeakMap();
figures.forEach((figure, i) => {
    const chart = charts[i];
    understand(chart);
    const own = chart.panels.map((data) => new Panel(figure, chart, data));
    figure.append(make("div", {class: "panels"}, ...own.map((panel) => panel.element)),
        noted(chart.notes.filter((note) => !common.includes(note))));
    if (own.length === 1) own[0].element.classList.add("only");
    if (chart.panels[0].title.startsWith("measured, ")) own[0].element.parentElement.classList.add("threes");
    for (const panel of own) seen.set(panel.element, panel);
    panels.push(...own);
    addNumbers(figure, chart);
});

// A panel is drawn when it is about to be seen, and again when its width or the filters change.
const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        near.unobserve(entry.target);
        seen.get(entry.target).draw();
        resized.observe(entry.target);
    }
}, {rootMargin: "600px"});
const resized = new ResizeObserver((entries) => {
    for (const entry of entries) {
        const panel = seen.get(entry.target);
        if (Math.floor(entry.contentRect.width) !== panel.width) panel.draw();
    }
});
for (const panel of panels) near.observe(panel.element);
document.addEventListener("filtered", () => {
    for (const figure of figures) figure.hidden = false;
    for (const panel of panels) {
        panel.element.hidden = false;
        panel.draw();
    }
    for (const figure of figures)
        figure.hidden = [...figure.querySelectorAll(".panel")].every((panel) => panel.hidden);
});
restorers.push(() => {
    const [, name, at] = /^(.*)\.(\d+)$/.exec(state.get("spot")) || [];
    const panel = panels.find((one) => one.name === name) || panels.find((one) => known(one.chosen));
    if (panel) panel.choose(name ? Number(at) : undefined);
});
addEventListener("beforeprint", () => {
    for (const panel of panels) panel.draw();
});
