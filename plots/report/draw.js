// How the page's charts are drawn: scales, marks, and a function for each kind of panel. A panel is drawn at
// the width that it has, so letters keep their size on a phone; the function fills its `svg` and its `spots`,
// one for each mark: its place, its row, and the title of its tip.
const look = dataOf(document.getElementById("look"));
const hue = (number) => `--hue:${look.hues[(number - 1) % look.hues.length] || "#0072b2"}`;

// --- numbers and scales ----------------------------------------------------------------------------------

const shown = (x) => !known(x) ? "" :
    Number.isInteger(x)        ? String(x) :
    Math.abs(x) >= 1000        ? x.toFixed(0) :
    Math.abs(x) >= 0.01        ? x.toPrecision(3) :
                                 x.toPrecision(2);
const mean = (x) => x >= 100 ? x.toFixed(0) : x.toPrecision(x < 0.01 ? 1 : 3); // of measured numbers
const plain = (x) => String(parseFloat(x.toPrecision(Math.abs(x) < 0.1 ? 2 : 6)));
const brief = (name) => name.split(": ")[0]; // an axis's name without its explanation
// A value and its interval with the digits that the interval supports, as in the tables (measured_text).
const reach = (value, low, high, mark = "") => {
    if (!known(low) || !known(high)) return shown(value) + mark;
    const unit = Math.floor(Math.log10(0.28 * (high - low) / 2)), digits = Math.min(3, Math.max(0, -unit));
    return `${value.toFixed(digits)}${mark} [${low.toFixed(digits)}, ${high.toFixed(digits)}]`;
};

// Of values that may be too many for the arguments of Math.max.
const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const greatest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);

// Maps values to pixels; log: the base of a logarithmic scale, or 0.
const scale = (low, high, from, to, log) => {
    const at = log ? Math.log : (x) => x, a = at(low), b = at(high);
    const map = (x) => from + (to - from) * (b > a ? (at(x) - a) / (b - a) : 0.5);
    return Object.assign(
        map, {low, high, ticks: (most) => log ? powers(low, high, log, most) : steps(low, high, most)});
};
const steps = (low, high, most) => {
    const rough = (high - low) / most, ten = 10 ** Math.floor(Math.log10(rough));
    const step = ten * [1, 2, 5, 10].find((n) => n * ten >= rough * 0.999), all = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) all.push(n * step);
    return all;
};
const powers = (low, high, base, most) => {
    const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9),
          last = Math.floor(Math.log(high) / Math.log(base) + 1e-9), all = [];
    const stride = Math.max(1, Math.ceil((last - first + 1) / most));
    for (let n = first; n <= last; n += stride) all.push(base ** n);
    return all.length > 1 ? all : steps(low, high, most);
};

// --- marks -----------------------------------------------------------------------------------------------

const MARKS = [
    (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 1 ${2 * r} 0a${r} ${r} 0 1 1 ${-2 * r} 0`,
    (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    (x, y, r) => `M${x} ${y - 1.2 * r}l${1.2 * r} ${2.1 * r}h${-2.4 * r}z`,
    (x, y, r) => `M${x} ${y + 1.2 * r}l${1.2 * r} ${-2.1 * r}h${-2.4 * r}z`,
    (x, y, r, d = 1.35 * r) => `M${x} ${y - d}l${d} ${d}l${-d} ${d}l${-d} ${-d}z`,
    (x, y, r) => `M${x - 1.3 * r} ${y - 0.6 * r}h${2.6 * r}v${1.2 * r}h${-2.6 * r}z`,
];
const roofDash = (ceiling) => ceiling === 1 ? "4 3" : ""; // what a machine allows, and what was measured
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const markOf = (number) => MARKS[(number - 1) % MARKS.length];
const dashOf = (number) => DASHES[Math.floor((number - 1) / MARKS.length) % DASHES.length];
const px = (x) => Math.round(10 * x) / 10;

// All samples of a lost point are disturbed: it's grey, and no scale of colours, line or level goes by it.
const isLost = ({column}, row) => row[column.doubtful] > 1;
const hatched = ({x, y, width, height, ...look}, step = 6) => {
    let d = "";
    for (let at = step; at < width + height; at += step)
        d += `M${px(x + Math.max(0, at - height))} ${px(y + Math.min(height, at))}` +
            `L${px(x + Math.min(width, at))} ${px(y + Math.max(0, at - width))}`;
    return [make("rect", {x, y, width, height, ...look, class: "lost"}), make("path", {class: "hatch", d})];
};

// --- what a panel draws ----------------------------------------------------------------------------------

// Axes: a line for each tick, its number, and the axes' names.
const drawAxes = (panel, x, y, edge, names) => {
    const svg = panel.svg,
          counts = panel.series.every((series) => series.rows.every((row) => Number.isInteger(row[0])));
    const ticks = x.ticks(Math.max(3, Math.floor((edge.right - edge.left) / 70)))
                      .filter((value) => !counts || Number.isInteger(value));
    for (const value of y.ticks(5)) {
        svg.append(
            make("line", {class: "grid", x1: edge.left, x2: edge.right, y1: px(y(value)), y2: px(y(value))}),
            make("text", {x: edge.left - 6, y: px(y(value)) + 4, "text-anchor": "end"}, plain(value)));
    }
    for (const value of ticks)
        svg.append(
            make("text", {x: px(x(value)), y: edge.bottom + 16, "text-anchor": "middle"}, plain(value)));
    svg.append(make("text", {x: 0, y: 11}, names.y),
        make("text", {x: edge.right, y: edge.bottom + 32, "text-anchor": "end"}, names.x));
};

// The bounds of y as the script sets them: its ends, or a value that must be on it. Nothing is less than 0.
const bounds = ({from, to, within}, low, high) => {
    const pad = 0.06 * (high - low || high || 1);
    return [
        from ?? Math.max(0, Math.min(within ?? Infinity, low - pad)),
        to ?? Math.max(within ?? -Infinity, high + pad)
    ];
};

const drawLines = (panel) => {
    const {chart, column} = panel, width = panel.width, height = 230;
    const edge = {left: 44, right: width - 10, top: 22, bottom: height - 40};
    const logs = chart.log || "", square = column.measured !== undefined;
    const rows = panel.series.flatMap((series) => series.rows);
    const xs = rows.map((row) => row[0]).filter(known), all = panel.domain.filter(known);
    let yAt =
        logs.includes("y") ? [least(all), 1.1 * greatest(all)] : bounds(chart, least(all), greatest(all));
    let xAt = [least(xs), greatest(xs)];
    if (square) xAt = yAt = bounds({}, least([...xs, ...all]), greatest([...xs, ...all]));
    else if (xAt[0] === xAt[1]) xAt = logs ? [xAt[0] / 2, 2 * xAt[0]] : [xAt[0] - 1, xAt[0] + 1];
    const base = column.ceiling !== undefined ? 10 : 2, xBase = column.token === undefined ? base : 2;
    const x = scale(...xAt, edge.left + 8, edge.right - 8, logs.includes("x") && xBase),
          y = scale(...yAt, edge.bottom, edge.top, logs.includes("y") && base);
    panel.size(height);
    drawAxes(panel, x, y, edge, {x: panel.names.x, y: panel.names.y});
    if (square)
        panel.svg.append(
            make("path", {class: "one", d: `M${x(x.low)} ${y(x.low)}L${x(x.high)} ${y(x.high)}`}));
    else if (panel.isSpeedup && y.low < 1 && y.high > 1)
        panel.svg.append(make("path", {class: "one", d: `M${edge.left} ${px(y(1))}H${edge.right}`}));
    if (column.token !== undefined) drawEqual(panel, y, edge);
    for (const series of panel.series) drawSeries(panel, series, x, y);
    return height;
};

// Lines of equal tokens a millisecond: where the end of a stem is.
const drawEqual = (panel, y, edge) => {
    const tens = powers(1 / y.high, 1 / y.low, 10, 6), all = tens.flatMap((one) => [one, 2 * one, 5 * one]);
    for (const speed of tens.length > 2 ? tens : all.filter((one) => y.low * one < 1))
        panel.svg.append(make("path", {class: "grid", d: `M${edge.left} ${px(y(1 / speed))}H${edge.right}`}),
            make("text", {class: "why", x: edge.right, y: px(y(1 / speed)) - 3, "text-anchor": "end"},
                `${plain(speed)} tokens/ms`));
};

const drawSeries = (panel, series, x, y) => {
    const {chart, column} = panel, {low, high} = chart, group = make("g", {style: hue(series.colour)}),
                  mark = markOf(series.mark);
    const dotted = column.mark !== undefined || column.measured !== undefined,
          roof = column.ceiling !== undefined;
    const good = series.rows.filter((row) => known(row[0]) && known(row[1]));
    const sound = good.filter((row) => !isLost(panel, row)), lost = good.filter((row) => isLost(panel, row));
    const follows = (rows, row) => !row.begins && rows.includes(good[good.indexOf(row) - 1]);
    const path = (rows, value) =>
        rows.filter((row) => known(row[value]))
            .map((row, i) => `${i && follows(rows, row) ? "L" : "M"}${px(x(row[0]))} ${px(y(row[value]))}`)
            .join("");
    if (column.law_low !== undefined) {
        const back = [...good]
                         .reverse()
                         .filter((row) => known(row[low]))
                         .map((row) => `L${px(x(row[0]))} ${px(y(row[low]))}`)
                         .join("");
        if (back) group.append(make("path", {class: "reach", d: `${path(good, high)}${back}z`}));
    } else if (low !== undefined) {
        group.append(make("path", {
            class: "whisker",
            d: good.filter((row) => known(row[low]))
                   .map((row) => `M${px(x(row[0]))} ${px(y(row[low]))}V${px(y(row[high]))}`)
                   .join("")
        }));
    }
    if (column.floor !== undefined)
        group.append(make(
            "path", {class: "line", "stroke-dasharray": "4 3", opacity: 0.6, d: path(good, column.floor)}));
    const ceiling = roof && greatest(good.map((row) => row[column.ceiling]));
    if (ceiling || !(dotted || roof))
        group.append(make("path", {
            class: ceiling ? "line roof" : "line",
            "stroke-dasharray": ceiling ? roofDash(ceiling) : dashOf(series.mark),
            d: path(sound, 1)
        }));
    if (column.token !== undefined)
        group.append(make("path", {
            class: "whisker stem",
            d: good.filter((row) => known(row[column.token]))
                   .map((row) => `M${px(x(row[0]))} ${px(y(row[1]))}V${px(y(row[column.token]))}m-4 0h8`)
                   .join("")
        }));
    const radius = good.length > 200 ? 1.6 : good.length > 40 ? 2.4 : 3.4;
    const dots = (rows) => rows.map((row) => mark(px(x(row[0])), px(y(row[1])), radius)).join("");
    const doubted = (row) => row[column.doubtful] > 0 || row[column.mark] > 0;
    if (!ceiling)
        group.append(make("path", {class: "dots", d: dots(sound.filter((row) => !doubted(row)))}),
            make("path", {class: "dots doubted", d: dots(sound.filter(doubted))}),
            make("path", {class: "dots lost", d: dots(lost)}));
    panel.svg.append(group);
    series.drawn = group;
    const pointOf = (row) => points.find((point) => point.number === row[column.point]),
          titleOf = (row) => (pointOf(row) || {label: series.name}).label;
    panel.spots.push(...good.map((row) => ({series, row, title: titleOf(row), x: x(row[0]), y: y(row[1])})));
};

// A label, its number at the right, and the bar under both: long labels have room on a phone.
const BAR = 38;
const drawBars = (panel) => {
    const {chart, column, width} = panel, stacked = chart.kind === "parts";
    const rows = panel.series.flatMap((series) => series.rows.map((row) => [series, row]));
    const most = 1.04 * Math.max(greatest(panel.domain.filter(known)), stacked ? 0 : 1);
    const x = scale(0, most, 1, width - 8, 0), height = rows.length * BAR + 26,
          star = (row) => row[column.doubtful] === 1 ? "*" : "";
    panel.size(height);
    for (const value of x.ticks(Math.max(3, Math.floor(width / 90)))) {
        panel.svg.append(
            make("line", {class: "grid", x1: px(x(value)), x2: px(x(value)), y1: 0, y2: height - 24}),
            make("text", {x: px(x(value)), y: height - 10, "text-anchor": value ? "middle" : "start"},
                plain(value)));
    }
    if (!stacked) panel.svg.append(make("path", {class: "one", d: `M${px(x(1))} 0V${height - 24}`}));
    rows.forEach(([series, row], i) => {
        const top = i * BAR + 6, y = top + 15, group = make("g", {style: hue(series.colour)});
        const value = stacked ? total(chart, row) : row[chart.value], low = row[chart.low],
              high = row[chart.high], why = chart.labels[row[column.label_why] - 1] || "",
              label = chart.labels[row[column.label_bar] - 1] || "";
        const number = stacked ? `${shown(value)} ms${star(row)}` :
            known(value) ? reach(value, low, high, star(row)) :
                           "";
        if (isLost(panel, row) && known(value))
            group.append(...hatched({x: 1, y, width: px(x(value) - 1), height: 11, rx: 2}));
        else if (stacked) {
            let from = 0;
            PARTS.forEach(([part], n) => {
                const size = row[column[part]] || 0;
                group.append(make("rect", {
                    class: "bar",
                    style: hue(n + 1),
                    x: px(x(from)),
                    y,
                    width: px(Math.max(0, x(from + size) - x(from))),
                    height: 11
                }));
                from += size;
            });
        } else if (known(value)) {
            group.append(make("rect", {class: "bar", x: 1, y, width: px(x(value) - 1), height: 11, rx: 2}));
        } else panel.svg.append(make("text", {class: "why", x: 1, y: y + 9}, cut(why, width)));
        if (!stacked && known(value) && known(low))
            group.append(make("path", {
                class: "whisker bold",
                d: `M${px(x(low))} ${y + 5.5}H${px(x(high))}M${px(x(low))} ${y + 2.5}v6M${px(x(high))} ${
                    y + 2.5}v6`
            }));
        const published = row[column.published];
        if (known(published))
            group.append(make("path", {class: "level", d: MARKS[4](px(x(published)), y + 5.5, 4)}));
        const said = make("text", {class: "said", x: width - 2, y: top + 10, "text-anchor": "end"}, number);
        panel.svg.append(group,
            make("text", {class: "said", x: 1, y: top + 10}, cut(label, width - 30 - 6 * number.length)),
            said);
        panel.spots.push(
            {series, row, title: label, x: x(value || 0), y, box: [0, top - 4, width, top + BAR - 4]});
        series.drawn = group;
    });
    return height;
};
// A text cut to a width in pixels, of letters of 11 pixels.
const cut = (text, width) =>
    text.length * 6 <= width ? text : `${text.slice(0, Math.max(3, Math.floor(width / 6) - 1))}\u2026`;

// --- heat maps -------------------------------------------------------------------------------------------

const mixed = (part) => {
    const at = Math.min(0.9999, Math.max(0, part)) * (look.ramp.length - 1), i = Math.floor(at);
    const parts = [look.ramp[i], look.ramp[i + 1]].map(
        (colour) => [1, 3, 5].map((n) => parseInt(colour.slice(n, n + 2), 16)));
    return parts[0].map((from, n) => Math.round(from + (at - i) * (parts[1][n] - from)));
};
// The place of a value on the ramp, which is the same in every figure.
const shade = (value) => {
    const {stops} = look, i = stops.findIndex((stop) => value < stop);
    if (i <= 0) return i < 0 ? 1 : 0;
    return (i - 1 + Math.log(value / stops[i - 1]) / Math.log(stops[i] / stops[i - 1])) / (stops.length - 1);
};
const isLight = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b > 120;

const levelDash = (level) => ({1: "2 2", 1.1: "2 2", 1.5: "6 3"})[level] || "";

// Where a level runs between two cells, their common edge is drawn: no line goes through a number. `said` gets
// the levels at each place that has a text: the top of a line, or if it has no upright part, its right.
const drawLevels = (panel, cells, level, of, edges, name, said) => {
    const at = (x, y) => cells.get(`${x},${y}`), parts = [], ends = [];
    const crosses = (a, b) => a && b && known(of(a)) && known(of(b)) && (of(a) < level) !== (of(b) < level);
    for (const cell of cells.values()) {
        const [x, y] = cell, right = at(x + 1, y), above = at(x, y + 1);
        if (crosses(cell, right)) {
            parts.push(`M${px(edges.x(x + 1))} ${px(edges.y(y))}V${px(edges.y(y + 1))}`);
            ends.push([y, px(edges.x(x + 1)), px(edges.y(y + 1)) + 3]);
        }
        if (crosses(cell, above)) {
            parts.push(`M${px(edges.x(x))} ${px(edges.y(y + 1))}H${px(edges.x(x + 1))}`);
            if (!right) ends.push([0, px(edges.x(x + 1)), px(edges.y(y + 1)) + 3]);
        }
    }
    if (said && ends.length) {
        const [, ...place] = ends.reduce((top, end) => end[0] > top[0] ? end : top);
        said.set(String(place), [...(said.get(String(place)) || []), level]);
    }
    if (parts.length)
        panel.svg.append(make("path",
            {class: name, "stroke-dasharray": name === "level" ? levelDash(level) : "", d: parts.join("")}));
    return parts.length > 0;
};

const drawHeat = (panel) => {
    const {chart, column, width} = panel, rows = panel.series[0].rows;
    const nx = Math.max(...rows.map((row) => row[0])), ny = Math.max(...rows.map((row) => row[1])),
          floor = column.floor;
    const left = 46, cell = Math.min(72, (width - left - 14) / nx),
          tall = rows.some((row) => known(row[floor])) ? 36 : 28, top = 20, height = top + ny * tall + 36;
    const edges = {x: (x) => left + (x - 1) * cell, y: (y) => top + (ny + 1 - y) * tall},
          cells = new Map(rows.map((row) => [`${row[0]},${row[1]}`, row]));
    const small = cell < 42;
    panel.size(height);
    for (const row of rows) {
        const [x, y, value] = row, at = {
            x: px(edges.x(x)) + 0.5,
            y: px(edges.y(y + 1)) + 0.5,
            width: px(cell - 1),
            height: tall - 1,
            rx: 2
        };
        if (!known(value)) {
            panel.svg.append(make("rect", {class: "missing", ...at}));
            continue;
        }
        const isOff = isLost(panel, row), colour = isOff ? [] : mixed(shade(value)),
              ink = isOff ? "var(--ink)" : isLight(colour) ? "#101214" : "#ffffff";
        panel.svg.append(...isOff ? hatched(at) : [make("rect", {...at, fill: `rgb(${colour})`})]);
        const say = (text, dy, size) => cell >= 26 &&
            panel.svg.append(make("text", {
                x: px(edges.x(x) + cell / 2),
                y: px(edges.y(y + 1) + dy),
                "text-anchor": "middle",
                style: `fill:${ink};font-size:${size}px`
            },
                text));
        const digits = value >= 100 ? value.toFixed(0) : value.toFixed(small || value >= 10 ? 1 : 2);
        say(digits + (row[column.doubtful] === 1 ? "*" : ""), known(row[floor]) ? 16 : tall / 2 + 4,
            small ? 9.5 : 11);
        if (known(row[floor]))
            say(`\u2265\u2009${row[floor] >= 10 ? row[floor].toFixed(0) : row[floor].toFixed(small ? 1 : 2)}`,
                29, small ? 8.5 : 9.5);
        panel.spots.push({
            series: panel.series[0],
            row,
            title: panel.data.title,
            x: edges.x(x) + cell / 2,
            y: edges.y(y + 1) + tall / 2,
            box: [edges.x(x), edges.y(y + 1), edges.x(x + 1), edges.y(y)]
        });
    }
    const label = (row, name) => chart.labels[row[column[name]] - 1] || "";
    for (const row of rows) {
        if (row[1] === 1)
            panel.svg.append(
                make("text", {x: px(edges.x(row[0]) + cell / 2), y: height - 22, "text-anchor": "middle"},
                    label(row, "label_x")));
        if (row[0] === 1)
            panel.svg.append(
                make("text", {x: left - 6, y: px(edges.y(row[1]) - tall / 2 + 4), "text-anchor": "end"},
                    label(row, "label_y")));
    }
    panel.svg.append(make("text", {x: 0, y: 11}, panel.names.y),
        make("text", {x: left + nx * cell, y: height - 5, "text-anchor": "end"}, panel.names.x));
    panel.ridge = column.ridge !== undefined &&
        drawLevels(panel, cells, 1, (row) => row[column.ridge], edges, "ridge") &&
        rows.find((row) => known(row[column.ridge_rows]))[column.ridge_rows];
    const said = new Map();
    panel.levels =
        (chart.levels || [])
            .filter((level) => drawLevels(
                panel, cells, level, (row) => isLost(panel, row) ? null : row[2], edges, "level", said));
    for (const [place, levels] of said) {
        const [x, y] = place.split(",");
        panel.svg.append(
            make("text", {class: "level-name", x, y, "text-anchor": "middle"}, levels.map(plain).join(" ")));
    }
    return height;
};
