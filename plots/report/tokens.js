// Texts token by token: two methods on the same prompt, side by side. The columns of their steps are those of
// tokens.sql; a tip has what it has no line for by its name.
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
const promptOf = (text) => [text.model, text.dataset, text.prompt, text.turn].join("\n");

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
    constructor(change) {
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
            `${shown(text.S)} a step, ${shown(text.ms)} ms${why}`;
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
        showTip(quoted(this.tokens[at].piece), tokenPairs(this.text, this.tokens[at]),
            this.spans[at].getClientRects()[0] || this.words.getBoundingClientRect(), aloud);
    }

    leave() {
        if (this.spans[this.at]) this.spans[this.at].classList.remove("here");
        hideTip();
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

// The prompt's two texts, and the place where they part.
const tokenView = () => {
    const prompt = make("select", {}), parting = make("p", {class: "notes", role: "status"});
    const sides = [0, 1].map(() => new TokenSide(() => fill()));
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
    const fill = () => {
        for (const side of sides)
            side.show(here().find((text) => keyOf(text) === side.pick.value) || here()[0]);
        const at = partsAt();
        for (const side of sides) if (side.spans[at]) side.spans[at].classList.add("parts");
        parting.replaceChildren(at < 0 ? "The two texts are the same, token for token." :
                                         `The two texts part at token ${at + 1}: ${
                                             sides.map((side) => side.tokens[at] ? quoted(side.tokens[at].piece) : "the end")
                                                 .join(" and ")}. `,
            ...(at < 0 ? [] : [jump]));
    };
    // The methods of a prompt: those that were chosen before, or the fastest, and the same of another run or the next.
    const choose = () => {
        sides.forEach((side, i) => {
            const before = side.pick.value, texts = here();
            side.pick.replaceChildren(
                ...texts.map((text) => make("option", {value: keyOf(text)}, nameOf(text))));
            const kept = texts.some((text) => keyOf(text) === before);
            const twin = texts.find((text) => text.run !== texts[0].run && text.label === texts[0].label);
            side.pick.value = kept ? before : keyOf(i && twin || texts[Math.min(i, texts.length - 1)]);
        });
        fill();
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
    prompt.addEventListener("input", choose);
    jump.addEventListener("click", () => {
        sides[0].words.focus();
        sides[0].go(partsAt(), true);
    });
    document.addEventListener("filtered", list);
    const view = make("div", {class: "tokens"}, make("label", {}, "prompt", prompt),
        make("div", {class: "panels"}, ...sides.map((side) => side.element)), parting);
    document.getElementById("tokens").after(view);
    list();
};
if (tokens.texts.length) tokenView();
