// Texts token by token: two methods on the same prompt, side by side, and why one took less time. The columns of
// their steps are those of tokens.sql; a tip has what it has no line for by its name.
const tokens = document.getElementById("tokens") ? dataOf(document.getElementById("tokens")) : {texts: []};
const stepAt = Object.fromEntries((tokens.columns || []).map((name, i) => [name, i]));
const TOLD_BY_LINES = new Set(["step", "emitted", "accepted", "source", "rank", "levels", "rejected", "margin"]);
const MILLISECONDS = new Set(PARTS.map(([part]) => part));
const sources = [...new Set(tokens.texts.flatMap((text) => text.steps.map((step) => step[stepAt.source])))]
                    .filter(Boolean);
const quoted = (piece) => `\u201c${piece.replace(/\n/g, "\u21b5")}\u201d`;

// The tokens of a text: each one's piece, step and place in it.
const tokensOf = (text) => {
    let next = 0;
    return text.steps.flatMap(
        (step) => text.pieces.slice(next, next += step[stepAt.emitted])
                      .map((piece, place) => ({piece, step, place, guessed: place < step[stepAt.accepted]})));
};
const severalRuns = new Set(tokens.texts.map((text) => text.run)).size > 1;
const keyOf = (text) => `${text.run}/${text.point}`;
const nameOf = (text) => severalRuns ? `run ${text.run}: ${text.label}` : text.label;
const promptOf = (text) => [text.model, text.dataset, text.prompt, text.turn].join(".");

// What a tip tells of a token.
const tokenPairs = (text, token) => {
    const {step, place} = token, get = (name) => step[stepAt[name]];
    const rejected = (get("rejected") || []).filter(([depth]) => depth === place + 1);
    return [
        ["step", `${get("step")} of ${text.steps.length}, its token ${place + 1} of ${get("emitted")}`],
        ["written by", token.guessed ? `${get("source") || "a guess"}` : "the target itself"],
        ["guess", token.guessed ? `row ${get("rank")} of its source, level ${place + 1} of ${get("levels")}` : null],
        ["rejected here", rejected.map(([, piece]) => quoted(piece)).join(" ")],
        ["margin", token.guessed || !known(get("margin")) ? null : `${shown(get("margin"))} above the second`],
        ...tokens.columns.filter((name) => !TOLD_BY_LINES.has(name) && known(get(name)))
            .map((name) => [name, shown(get(name)) + (MILLISECONDS.has(name) ? " ms" : "")])
    ];
};

// One of the two texts. Its tokens are one stop of the tab key: left and right go through them, up and down
// to the first token of another step.
class TokenSide {
    constructor(change, seen) {
        this.seen = seen; // hears which token is under the cursor; -1: none
        this.pick = make("select", {});
        this.pick.addEventListener("input", change);
        this.facts = make("p", {class: "notes"});
        this.words = make("div", {
            class: "words",
            role: "application",
            "aria-roledescription": "text, token by token",
            tabindex: 0
        });
        this.legend = make("ul", {class: "legend"});
        this.element =
            make("div", {class: "panel"}, make("label", {}, "method", this.pick), this.facts, this.legend, this.words);
        this.words.addEventListener("pointerover", (event) => this.go(this.spans.indexOf(event.target), false));
        this.words.addEventListener("pointerleave", () => this.leave());
        this.words.addEventListener("blur", () => this.leave());
        this.words.addEventListener("keydown", (event) => this.key(event));
    }

    show(text) {
        this.text = text;
        this.tokens = tokensOf(text);
        this.at = -1;
        this.spans = this.tokens.map(({piece, step, guessed}) => {
            const number = sources.indexOf(step[stepAt.source]) + 1,
                  classes = [guessed ? "guess" : "", step[stepAt.step] % 2 ? "" : "even"];
            return make("span",
                {class: classes.join(" ").trim(), ...(guessed && number ? {style: hue(number)} : {})}, piece);
        });
        this.words.replaceChildren(...this.spans);
        this.words.setAttribute("aria-label",
            `${nameOf(text)}, ${counted(this.tokens.length, "token")}. Arrow keys read them.`);
        const why = text.why ? `; its ${text.why} prompt` : "";
        this.facts.textContent = `${counted(text.tokens, "token")} in ${counted(text.steps.length, "step")}, ` +
            `${mean(text.S)} a step, ${mean(text.ms)} ms${why}`;
        const count = (name) => this.tokens.filter(
            ({step, guessed}) => guessed ? step[stepAt.source] === name : name === null).length;
        this.legend.replaceChildren(
            ...sources.filter(count).map(
                (name) => make("li", {},
                    make("span", {class: "guess", style: hue(sources.indexOf(name) + 1)}, name), ` ${count(name)}`)),
            make("li", {}, `the target itself ${count(null)}`));
    }

    go(at, aloud) {
        if (!this.spans[at]) return;
        this.leave();
        this.at = at;
        this.spans[at].classList.add("here");
        this.seen(at);
        showTip(quoted(this.tokens[at].piece), tokenPairs(this.text, this.tokens[at]),
            this.spans[at].getClientRects()[0] || this.words.getBoundingClientRect(), aloud);
    }

    leave() {
        if (this.spans[this.at]) this.spans[this.at].classList.remove("here");
        this.seen(-1);
        hideTip();
    }

    // The token at the place where the other side's cursor is.
    mark(at) {
        for (const span of this.words.querySelectorAll(".twin")) span.classList.remove("twin");
        if (this.spans[at]) this.spans[at].classList.add("twin");
    }

    key(event) {
        const {tokens: all, at} = this, number = at < 0 ? 0 : all[at].step[stepAt.step];
        const first = (n) => all.findIndex(({step}) => step[stepAt.step] === n);
        const next = {
            ArrowRight: at + 1,
            ArrowLeft: Math.max(0, at - 1),
            ArrowDown: first(number + 1),
            ArrowUp: first(Math.max(1, number - 1)),
            Home: 0,
            End: all.length - 1
        }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        if (!this.spans[next]) return;
        this.spans[next].scrollIntoView({block: "nearest", behavior: "instant"});
        this.go(next, true);
        requestAnimationFrame(() => this.at === next && this.go(next, false)); // scrolling hides tips
    }
}

// Why one text took less time than the other: a token costs what a step costs, over the tokens that a step writes.
const costOf = (text) => {
    const n = text.steps.length,
          sum = (name) => text.steps.reduce((all, step) => all + (step[stepAt[name]] || 0), 0);
    return {
        name: nameOf(text),
        ms: text.ms / n,
        rows: sum("rows") / n,
        S: text.tokens / n,
        token: text.ms / text.tokens,
        parts: Object.fromEntries(PARTS.slice(0, 4).map(([part]) => [part, sum(part) / n]))
    };
};
const times = (x) => `${x.toFixed(2)} times`;
const whyFaster = (texts) => {
    const [first, second] = texts.map(costOf), parts = PARTS.slice(0, 4);
    const [fast, slow] = [first, second].sort((a, b) => a.token - b.token);
    if (!(fast.token > 0 && slow.token > 0)) return [];
    const gain = slow.token / fast.token, more = fast.S / slow.S, longer = fast.ms / slow.ms;
    const pointOf = ({run, point}) =>
        run === tokens.texts[0].run && points.find(({number}) => number === point) || {};
    const doubts = texts.filter((text) => pointOf(text).doubt)
                       .map((text) => `${nameOf(text)}: ${pointOf(text).doubt}`);
    const change = (part) => Math.abs(fast.parts[part] - slow.parts[part]);
    const [part] = parts.reduce((most, one) => change(one[0]) > change(most[0]) ? one : most);
    const cells = [
        ["tokens a step", (cost) => cost.S], ["rows a step", (cost) => cost.rows], ["ms a step", (cost) => cost.ms],
        ...parts.map(([name, what]) => [`${name}: ${what}`, (cost) => cost.parts[name], "part"]),
        ["ms a token", (cost) => cost.token]
    ];
    const verdict = gain < 1.02 ? "Both took the same time, within 2%. " :
                                  `${fast.name} was ${times(gain)} as fast as ${slow.name} here. `;
    const against = (of) => `${mean(of(fast))} against ${mean(of(slow))}`;
    const ratio = (of) => {
        const x = of(second) / of(first);
        return x > 0.01 && x < 100 ? x.toFixed(2) : "";
    };
    return [
        make("p", {}, make("b", {}, verdict),
            `A step of ${fast.name} wrote ${times(more)} as many tokens (${against((cost) => cost.S)}) and took ` +
                `${times(longer)} as long (${against((cost) => cost.ms)} ms, for ${against((cost) => cost.rows)} ` +
                `rows; most of the difference is in the part ${part}): ${more.toFixed(2)} / ` +
                `${longer.toFixed(2)} = ${(more / longer).toFixed(2)}.`,
            doubts.length ? ` These times are in doubt: ${doubts.join("; ")}.` : ""),
        make("div", {class: "scroll"},
            make("table", {}, make("caption", {}, "what a token cost"),
                make("thead", {},
                    make("tr", {}, ...["", first.name, second.name, "second over first"].map(
                        (name, i) => make("th", {scope: "col", ...(i ? {class: "n"} : {})}, name)))),
                make("tbody", {},
                    ...cells.map(
                        ([name, of, kind]) => make("tr", {class: kind || ""}, make("th", {scope: "row"}, name),
                            ...[mean(of(first)), mean(of(second)), ratio(of)].map(
                                (x) => make("td", {class: "n"}, x)))))))
    ];
};

// The prompt's two texts, the place where they part, and why one was faster. showText opens the text of a point.
let showText = () => false;
const hasText = (point, prompt) => tokens.texts.some((text) => text.point === point && text.prompt === prompt);
const tokenView = () => {
    const prompt = make("select", {}), parting = make("p", {class: "notes", role: "status"}),
          why = make("div", {class: "why-faster"});
    const sides = [0, 1].map((i) => new TokenSide(() => fill(true), (at) => {
        sides[1 - i].mark(at);
        if (at >= 0) remember({token: `${"ab"[i]}.${at}`});
    }));
    const jump = make("button", {type: "button"}, "go there");
    const shownTexts = () => tokens.texts.filter(
        (text) => ["model", "dataset"].every((key) => !chosen[key] || text[key] === chosen[key]));
    const here = () => shownTexts().filter((text) => promptOf(text) === prompt.value);

    // The first token that differs; -1: none.
    const partsAt = () => {
        const [a, b] = sides.map((side) => side.tokens), most = Math.max(a.length, b.length);
        for (let i = 0; i < most; i++)
            if ((a[i] || {}).piece !== (b[i] || {}).piece) return i;
        return -1;
    };
    const fill = (asked) => {
        for (const side of sides)
            side.show(here().find((text) => keyOf(text) === side.pick.value) || here()[0]);
        const at = partsAt();
        for (const side of sides) if (side.spans[at]) side.spans[at].classList.add("parts");
        parting.replaceChildren(at < 0 ? "The two texts are the same, token for token." :
                                         `The two texts part at token ${at + 1}: ${
                                             sides.map((side) => side.tokens[at] ? quoted(side.tokens[at].piece) : "the end")
                                                 .join(" and ")}. `,
            ...(at < 0 ? [] : [jump]));
        why.replaceChildren(...(sides[0].text === sides[1].text ? [] : whyFaster(sides.map((side) => side.text))));
        const [a, b] = sides.map((side) => side.pick.value);
        if (asked) remember({prompt: prompt.value, a, b, token: "", at: "Token-by-token"});
    };
    // The methods of a prompt: those that were chosen before, or the fastest, and the same of another run or the next.
    const choose = (wanted) => {
        sides.forEach((side, i) => {
            const before = (wanted || [])[i] || side.pick.value, texts = here();
            side.pick.replaceChildren(
                ...texts.map((text) => make("option", {value: keyOf(text)}, nameOf(text))));
            const kept = texts.some((text) => keyOf(text) === before);
            const twin = texts.find((text) => text.run !== texts[0].run && text.label === texts[0].label);
            side.pick.value = kept ? before : keyOf(i && twin || texts[Math.min(i, texts.length - 1)]);
        });
        fill(false);
    };
    const list = () => {
        const before = prompt.value, groups = new Map();
        for (const text of shownTexts()) {
            const key = promptOf(text);
            groups.set(key, [...(groups.get(key) || []), text]);
        }
        prompt.replaceChildren(...[...groups].map(([value, texts]) => {
            const why = [...new Set(texts.filter((text) => text.why).map((text) => `${text.why} of ${text.method}`))];
            const turn = texts[0].turn ? `, turn ${texts[0].turn + 1}` : "";
            return make("option", {value},
                `${texts[0].dataset} ${texts[0].prompt}${turn}${why.length ? `: ${why.join(", ")}` : ""}`);
        }));
        view.hidden = !groups.size;
        if (!groups.size) return;
        if (groups.has(before)) prompt.value = before;
        choose();
    };
    prompt.addEventListener("input", () => {
        choose();
        fill(true);
    });
    jump.addEventListener("click", () => {
        sides[0].words.focus();
        sides[0].go(partsAt(), true);
    });
    document.addEventListener("filtered", list);
    const view = make("div", {class: "tokens"}, make("label", {}, "prompt", prompt),
        make("div", {class: "panels"}, ...sides.map((side) => side.element)), parting, why);
    document.getElementById("tokens").after(view);
    list();

    // It is compared with its baseline, or with the fastest other.
    showText = (point, name, turn) => {
        const text = tokens.texts.find((one) => one.point === point && one.prompt === name && one.turn === turn) ||
            tokens.texts.find((one) => one.point === point && one.prompt === name);
        if (!text) return false;
        prompt.value = promptOf(text);
        const others = here().filter((other) => other !== text),
              other = others.find((one) => one.method === "autoregressive") || others[0] || text;
        choose([keyOf(text), keyOf(other)]);
        const [a, b] = [keyOf(text), keyOf(other)];
        remember({prompt: prompt.value, a, b, token: "", at: "Token-by-token"}, true);
        showPlace("Token-by-token");
        sides[0].words.focus({preventScroll: true});
        return true;
    };
    restorers.push(() => {
        if (state.has("prompt")) prompt.value = state.get("prompt");
        if (!here().length) return list();
        choose([state.get("a"), state.get("b")]);
        const [, letter, at] = /^([ab])\.(\d+)$/.exec(state.get("token")) || [];
        const side = sides["ab".indexOf(letter)];
        if (letter) requestAnimationFrame(() => side.go(Number(at), false)); // scrolling hides tips
    });
};
if (tokens.texts.length) tokenView();
