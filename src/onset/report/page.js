// Draws the figures of the page from the JSON in it: one function a kind of figure.
"use strict";
(() => {
const page = JSON.parse(document.getElementById("data").textContent);
let shared = page.shared || {};  // tokens that figures name: of the figure being drawn
const root = document.documentElement;
const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;  // what the button says; null follows the system
let printing = false;
const paperWidth = 680;   // of a sheet, in CSS pixels
const printedWidth = 920;  // of a figure, which is made smaller to fit
const small = () => window.innerWidth < 600;

// Errors are counted where a test can read them.
root.dataset.errors = "0";
window.addEventListener("error", () => { root.dataset.errors = String(1 + Number(root.dataset.errors)); });
window.addEventListener("unhandledrejection", () => { root.dataset.errors = String(1 + Number(root.dataset.errors)); });

// ---- words and numbers

// plotly.js reads a little HTML in its texts; a token must not be read so.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const number = (x) => {
  if (x === null || x === undefined) return "no number";
  const size = Math.abs(x);
  if (size >= 1000) return x.toLocaleString("en-US", {maximumFractionDigits: size >= 1e5 ? 0 : 1});
  return size === 0 ? "0" : String(Number(x.toPrecision(4)));
};
const tokenText = (t) => (shared.tokens && t < shared.tokens.length ? shared.tokens[t] : null);
const tokenName = (t) => {
  const text = tokenText(t);
  const id = shared.ids && t < shared.ids.length ? ` (id ${shared.ids[t]})` : "";
  return text === null ? `token ${t}${id}` : `token ${t} "${plain(text)}"${id}`;
};

// ---- themes

const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
const isDark = () => !printing && (chosenTheme ? chosenTheme === "dark" : darkScheme.matches);
const colourScale = () => (isDark()
  ? [[0, "#1c2736"], [0.3, "#23527c"], [0.5, "#3c9fc4"], [0.65, "#b9d8c8"], [0.8, "#ffc069"], [1, "#ff5f2e"]]
  : [[0, "#eef2f6"], [0.3, "#a9cbe6"], [0.5, "#4a90c8"], [0.65, "#5a6fa8"], [0.8, "#b2528a"], [1, "#d4380d"]]);

const axis = (title, more) => Object.assign({
  title: {text: title, standoff: 10}, gridcolor: colour("grid"), zerolinecolor: colour("line"),
  linecolor: colour("line"), automargin: true,
}, more);
const layout = (more) => Object.assign({
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: {family: getComputedStyle(document.body).fontFamily, size: small() ? 12 : 14, color: colour("ink")},
  hoverlabel: {bgcolor: colour("panel"), bordercolor: colour("line"), font: {color: colour("ink"), size: 13}, align: "left"},
  margin: small() ? {l: 48, r: 8, t: 16, b: 44} : {l: 72, r: 24, t: 20, b: 52},
  legend: {orientation: "h", x: 0, y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)"},
  modebar: {bgcolor: "rgba(0,0,0,0)", color: colour("others"), activecolor: colour("ink")},
}, more);

// ---- magnitude by layer

function magnitude(data) {
  const layers = data.largest.map((_, l) => l);
  const positive = (x) => (x > 0 ? x : null);  // a logarithm has no zero
  const rank = (r, name, tone, width) => ({
    type: "scatter", mode: "lines+markers", name, x: layers,
    y: data.largest.map((e) => (r < e.length ? positive(Math.abs(e[r][2])) : null)),
    text: data.largest.map((e, l) => (r < e.length
      ? `<b>${name} after layer ${l}: ${number(Math.abs(e[r][2]))}</b><br>${tokenName(e[r][0])}<br>dimension ${e[r][1]}, value ${number(e[r][2])}` : "")),
    hovertemplate: "%{text}<extra></extra>", line: {color: colour(tone), width}, marker: {size: width + 3},
  });
  const others = data.others.map((other, i) => ({
    type: "scatter", mode: "lines", name: "other prompts", legendgroup: "others", showlegend: i === 0,
    x: layers, y: other.values.map(positive), line: {color: colour("others"), width: 1.2},
    hovertemplate: `prompt ${other.prompt}, layer %{x}: %{y:.5~g}<extra></extra>`,
  }));
  const line = (name, values, tone, dash) => ({
    type: "scatter", mode: "lines", name, x: layers, y: values.map(positive),
    line: {color: colour(tone), width: 1.8, dash}, hovertemplate: `${name}, layer %{x}: %{y:.4~g}<extra></extra>`,
  });
  const shapes = [];
  const annotations = [];
  if (data.me_layer !== null) {
    shapes.push({type: "rect", xref: "x", yref: "paper", x0: data.me_layer, x1: data.last_massive_layer,
      y0: 0, y1: 1, fillcolor: colour("band"), line: {width: 0}, layer: "below"});
    shapes.push({type: "line", xref: "x", yref: "paper", x0: data.me_layer, x1: data.me_layer, y0: 0, y1: 1,
      line: {color: colour("accent"), width: 1.5, dash: "dot"}, layer: "below"});
    const right = data.me_layer > layers.length / 2;
    annotations.push({x: data.me_layer, y: 0.02, xref: "x", yref: "paper", text: `<b>ME layer ${data.me_layer}</b>`,
      showarrow: false, xanchor: right ? "right" : "left", yanchor: "bottom", xshift: right ? -6 : 6, font: {color: colour("accent")}});
  }
  return {
    traces: others.concat([
      line("median", data.median, "median", "solid"), line("rule", data.threshold, "accent", "3px,3px"),
      rank(2, "third", "third", 1.5), rank(1, "second", "second", 2), rank(0, "largest", "first", 3)]),
    layout: layout({
      xaxis: axis("layer", {dtick: layers.length > 16 ? 5 : 1, range: [-0.6, layers.length - 0.4]}),
      yaxis: axis("|x|", {type: "log", exponentformat: "power", dtick: 1}),
      shapes, annotations, legend: {orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "reversed", bgcolor: "rgba(0,0,0,0)"},
    }),
  };
}

// ---- surfaces over dimensions: rows are tokens or layers

// The chosen rows as arrays, and for each cell the entry that it stands for.
function surfaceCells(data, hidden) {
  const rows = [];
  for (let r = 0; r + 1 < data.rows.length; ++r) {
    const single = data.rows[r + 1] - data.rows[r] === 1;
    if (!(hidden && data.hide && single && data.hide.rows.includes(data.rows[r]))) rows.push(r);
  }
  const columns = data.columns.slice(0, -1);
  const rowName = (row) => (data.row_kind === "token" ? tokenName(row) : `after layer ${row}`);
  const z = rows.map((r) => data.z[r]);
  const place = (r, c) => {
    const width = data.columns[c + 1] - data.columns[c];
    const at = data.at ? data.at[r][c] : 0;
    return [data.rows[r] + Math.floor(at / width), data.columns[c] + (at % width)];
  };
  const text = rows.map((r) => {
    const first = data.rows[r];
    const last = data.rows[r + 1] - 1;
    return columns.map((begin, c) => {
      const [row, column] = place(r, c);
      const end = data.columns[c + 1] - 1;
      let words = `<b>|x| ${number(data.z[r][c])}</b><br>${rowName(row)}<br>dimension ${column}`;
      if (end > begin || last > first) {
        words += "<br>largest of " + (last > first ? `${data.row_kind}s ${first}\u2013${last}, ` : "") + `dimensions ${begin}\u2013${end}`;
      }
      return words;
    });
  });
  return {rows, columns, z, text, place, starts: rows.map((r) => data.rows[r])};
}

// The highest points, in columns apart from each other, for labels.
function peaks(cells, most) {
  const best = cells.columns.map((_, c) => {
    let row = 0;
    for (let i = 1; i < cells.z.length; ++i) if (cells.z[i][c] > cells.z[row][c]) row = i;
    return {row, c, value: cells.z[row][c]};
  }).sort((a, b) => b.value - a.value);
  const apart = cells.columns.length / (small() ? 5 : 12);
  const chosen = [];
  for (const peak of best) {
    if (chosen.length === most || peak.value < 0.2 * best[0].value) break;
    if (chosen.every((other) => Math.abs(other.c - peak.c) >= apart)) chosen.push(peak);
  }
  return chosen;
}

// The magnitude below which `share` of the cells lie: a floor for logarithms.
function quantile(z, share) {
  const values = z.flat().filter((x) => x > 0).sort((a, b) => a - b);
  return values.length > 0 ? values[Math.floor((values.length - 1) * share)] : 1;
}

function rowTicks(data, cells, most) {
  const step = Math.max(1, Math.ceil(cells.starts.length / most));
  const picked = cells.starts.filter((_, i) => i % step === 0);
  const name = (row) => {
    const text = data.row_kind === "token" ? tokenText(row) : null;
    if (text === null) return String(row);
    const cut = Array.from(text.trim() || text);
    // In 3-D, plotly.js cannot show the escapes of < and >: look-alikes stand in for them, and a
    // space keeps & from being read as the beginning of one.
    const shown = (cut.length > 12 ? cut.slice(0, 11).join("") + "\u2026" : cut.join("")).replace(/</g, "\u2039").replace(/>/g, "\u203a").replace(/&/g, "& ");
    return `${row} ${shown}`;
  };
  return {tickvals: picked, ticktext: picked.map(name)};
}

function surface(data, state) {
  const cells = surfaceCells(data, state.hidden);
  const floor = quantile(cells.z, 0.1);
  const top = Math.max(...cells.z.map((row) => Math.max(...row)), floor * 10);
  const logs = cells.z.map((row) => row.map((x) => Math.log10(Math.max(x, floor))));
  const powers = [];
  for (let p = Math.ceil(Math.log10(floor)); p <= Math.log10(top); ++p) powers.push(p);
  const bar = {
    title: {text: "|x|", side: "top"}, tickvals: powers, ticktext: powers.map((p) => number(10 ** p)),
    thickness: small() ? 8 : 12, len: 0.6, outlinewidth: 0, x: 1, xanchor: "right",
  };
  const scale = {colorscale: colourScale(), cmin: Math.log10(floor), cmax: Math.log10(top), colorbar: bar, showscale: !small()};
  const marked = peaks(cells, small() ? 2 : 4);
  const label = (peak) => {
    const [, column] = cells.place(cells.rows[peak.row], peak.c);
    return `dim ${column}: ${number(peak.value)}`;
  };
  return state.flat ? heat(data, cells, logs, scale, marked, label) : mesh(data, cells, logs, scale, marked, label, state, top);
}

function mesh(data, cells, logs, scale, marked, label, state, top) {
  const floor = quantile(cells.z, 0.5);  // heights begin at the median: else noise towers over all
  let y = cells.starts;
  let z = state.log ? logs.map((row) => row.map((x) => Math.max(x, Math.log10(floor)))) : cells.z;
  let colours = logs;
  let text = cells.text;
  if (y.length === 1) {  // a single row would be no surface: a ribbon
    y = [y[0] - 0.3, y[0] + 0.3];
    z = [z[0], z[0]];
    colours = [colours[0], colours[0]];
    text = [text[0], text[0]];
  }
  const height = (x) => (state.log ? Math.log10(Math.max(x, floor)) : x);
  const bottom = state.log ? Math.log10(floor) : 0;
  const roof = state.log ? Math.log10(top) : top;
  const traces = [{
    type: "surface", x: cells.columns, y, z, surfacecolor: colours, text, hovertemplate: "%{text}<extra></extra>",
    lighting: {ambient: 0.85, diffuse: 0.35, specular: 0.05, roughness: 0.9}, ...scale,
    contours: {x: {highlight: false}, y: {highlight: false}, z: {highlight: false}},
  }];
  // A thin spike may fall between two pixels; its stem and label do not.
  for (const peak of marked) {
    const at = [cells.columns[peak.c], cells.starts[peak.row]];
    traces.push({
      type: "scatter3d", mode: "lines+text", x: [at[0], at[0]], y: [at[1], at[1]], z: [bottom, height(peak.value)],
      text: ["", label(peak)], textposition: small() && peak.c > 0.7 * cells.columns.length ? "top left" : "top center", textfont: {color: colour("ink"), size: small() ? 11 : 13},
      line: {color: colour("accent"), width: 5}, hoverinfo: "skip", showlegend: false,
    });
  }
  const powers = [];
  for (let p = Math.ceil(bottom); p <= roof; ++p) powers.push(p);
  const wall = (title, more) => Object.assign({
    title: {text: title}, gridcolor: colour("grid"), zerolinecolor: colour("grid"), color: colour("soft"), showspikes: false,
    showbackground: false, tickfont: {size: small() ? 10 : 12},
  }, more);
  const rowTitle = data.row_kind;
  return {
    traces,
    layout: layout({
      margin: {l: 0, r: 0, t: 0, b: 0},
      scene: {
        xaxis: wall("dimension", {range: [0, data.columns[data.columns.length - 1]]}),
        yaxis: wall(rowTitle, rowTicks(data, cells, small() ? 8 : 14)),
        zaxis: wall(small() ? "" : "|x|", state.log ? {range: [bottom, roof + 0.15 * (roof - bottom)], tickvals: powers, ticktext: powers.map((p) => number(10 ** p))} : {range: [0, roof * 1.12]}),
        aspectmode: "manual", aspectratio: small() ? {x: 1.15, y: 1.05, z: 0.75} : {x: 1.7, y: 1.15, z: 0.8},
        camera: small()
          ? {eye: {x: -1.65, y: -2.0, z: 0.9}, center: {x: 0, y: 0, z: -0.2}}
          : {eye: {x: -1.15, y: -1.72, z: 0.62}, center: {x: 0.05, y: 0, z: -0.22}},
        uirevision: "camera",
      },
      uirevision: "camera", showlegend: false,
    }),
  };
}

function heat(data, cells, logs, scale, marked, label) {
  const {cmin, cmax, ...rest} = scale;
  const y = cells.starts.map((_, i) => i);
  const ticks = rowTicks(data, cells, small() ? 10 : 24);
  return {
    traces: [{type: "heatmap", x: cells.columns, y, z: logs, text: cells.text, hovertemplate: "%{text}<extra></extra>", zmin: cmin, zmax: cmax, ...rest, colorbar: {...scale.colorbar, x: 1.01, xanchor: "left"}}],
    layout: layout({
      xaxis: axis("dimension", {showgrid: false}),
      yaxis: axis(data.row_kind, {showgrid: false, tickvals: ticks.tickvals.map((row) => cells.starts.indexOf(row)), ticktext: ticks.ticktext,
        autorange: data.row_kind === "token" ? "reversed" : true}),
      annotations: marked.map((peak) => ({
        x: cells.columns[peak.c], y: peak.row, text: label(peak), showarrow: true, arrowcolor: colour("accent"), ax: peak.c > cells.columns.length / 2 ? -50 : 50, ay: 28,
        font: {color: colour("ink"), size: 12}, bgcolor: colour("paper"), bordercolor: colour("line"), borderpad: 3,
      })),
    }),
  };
}

// ---- attribution

function stages(data, state) {
  const names = data.stages.map((s) => `layer ${s.layer}<br>${s.kind}, dim ${s.dim}`);
  // Signed along the entry: what pushes it the way it points, before a fall or after a rise.
  const direction = (s) => {
    const after = s.resid_pre + s.attn_out + s.ffn_out;
    return Math.sign(s.kind === "rise" ? after : s.resid_pre) || 1;
  };
  const size = (s) => Math.max(Math.abs(s.before), Math.abs(s.after), Math.abs(s.resid_pre), Math.abs(s.resid_pre + s.attn_out + s.ffn_out), 1e-30);
  const share = (s, part) => {
    const shares = {attn_out: s.attn_share, ffn_out: s.ffn_share};
    return typeof shares[part] === "number" ? `<br>${number(100 * shares[part])} % of the change` : "";
  };
  const bars = (part, name, tone) => ({
    type: "bar", orientation: "h", name, y: names, marker: {color: colour(tone)},
    x: data.stages.map((s) => (state.values ? s[part] : 100 * direction(s) * s[part] / size(s))),
    text: data.stages.map((s) => number(s[part])), textposition: "outside", cliponaxis: false, textfont: {size: small() ? 10 : 12},
    customdata: data.stages.map((s) => `<b>layer ${s.layer}, ${s.kind}</b> from ${number(s.before)} to ${number(s.after)}<br>${tokenName(s.token)}<br>dimension ${s.dim}<br>${name}: ${number(s[part])}${share(s, part)}`),
    hovertemplate: "%{customdata}<extra></extra>",
  });
  const values = data.stages.flatMap((s) => [s.resid_pre, s.attn_out, s.ffn_out, 0]);
  const span = Math.max(...values) - Math.min(...values);
  const room = (small() ? 0.3 : 0.12) * span;  // for the numbers at the bars' ends
  const range = state.values ? [Math.min(...values) - room, Math.max(...values) + room] : (small() ? [-135, 150] : [-120, 120]);
  return {
    height: Math.max(small() ? 320 : 300, 110 + data.stages.length * 66),
    traces: [bars("resid_pre", "input", "input"), bars("attn_out", "attention", "attention"), bars("ffn_out", "FFN", "ffn")],
    layout: layout({
      barmode: "group", bargap: 0.3, bargroupgap: 0.08,
      xaxis: axis(state.values ? "value" : "% of the larger of before and after", {range}),
      yaxis: axis("", {autorange: "reversed", ticklabelposition: "outside"}),
      margin: small() ? {l: 84, r: 8, t: 16, b: 44} : {l: 120, r: 24, t: 20, b: 52},
    }),
  };
}

// ---- the figures with their buttons

// Buttons of which one is pressed.
function chooser(place, names, label, chosen, choose) {
  if (names.length < 2) return;
  const group = document.createElement("div");
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", label);
  const mark = (at) => [...group.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === at)));
  names.forEach((name, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => { mark(i); choose(i); });
    group.append(button);
  });
  mark(chosen);
  place.append(group);
}


const kinds = {
  magnitude: {draw: magnitude, views: () => []},
  surface: {draw: surface, views: (data) => [
    {field: "flat", names: ["Surface", "Heat map"]},
    {field: "log", names: ["Linear height", "Logarithmic"]},
  ].concat(data.hide ? [{field: "hidden", names: ["All tokens", data.hide.label]}] : [])},
  stages: {draw: stages, views: () => [{field: "values", names: ["Scaled", "Values"]}]},
};
// Kinds of other files: functions that take these tools and give kinds. Such a kind may have
// `controls` too: it puts elements of its own into the place of the buttons.
const tools = {colour, colourScale, isDark, small, number, plain, axis, layout, chooser};
for (const more of window.onsetKinds || []) Object.assign(kinds, more(tools));

function draw(figure) {
  if (page.scopes) shared = page.scopes[figure.scope];
  const plot = kinds[figure.kind].draw(figure.data, figure.state);
  // Colour is logarithmic always: a heat map has no height to choose.
  figure.element.classList.toggle("flat", figure.state.flat);
  if (figure.heights) figure.heights.hidden = figure.state.flat;
  if (plot.height) {
    figure.element.style.height = plot.height + "px";
    plot.layout.height = plot.height;  // told, since plotly.js may look before the element has it
  }
  if (printing) plot.layout.width = printedWidth;
  return Plotly.react(figure.element, plot.traces, plot.layout, {
    responsive: true, displaylogo: false, scrollZoom: false, displayModeBar: small() ? false : "hover",
    toImageButtonOptions: {format: figure.kind === "surface" && !figure.state.flat ? "png" : "svg", filename: "onset-" + figure.id, scale: 2},
  });
}

function addViews(figure) {
  const place = document.getElementById(figure.id + "-views");
  if (kinds[figure.kind].controls) kinds[figure.kind].controls(place, figure, () => draw(figure));
  for (const view of kinds[figure.kind].views(figure.data)) {
    figure.state[view.field] = figure.state[view.field] || false;
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    if (view.field === "log") figure.heights = group;
    const buttons = view.names.map((name, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => {
        figure.state[view.field] = i === 1;
        mark();
        draw(figure);
      });
      group.append(button);
      return button;
    });
    const mark = () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(figure.state[view.field] === (i === 1))));
    mark();
    place.append(group);
  }
}

// The numbers of a figure as a file; made when they are asked for.
function addNumbers(figure) {
  const link = document.createElement("a");
  const text = JSON.stringify(figure.data);
  link.textContent = `The numbers as JSON (${Math.max(1, Math.round(text.length / 1000))} kB)`;
  link.className = "numbers";
  link.href = "#" + figure.id;
  link.download = "onset-" + figure.id + ".json";
  link.addEventListener("click", () => {
    link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  figure.element.parentElement.append(link);
}

const figures = page.figures.map((figure) => ({
  ...figure, element: document.getElementById(figure.id), state: {flat: false, log: false, hidden: false, values: false},
}));

// Without WebGL the surfaces would be empty boxes: heat maps stand in for them.
const canvas = document.createElement("canvas");
const webgl = Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));

const themeButton = document.getElementById("theme");
function applyTheme() {
  root.dataset.theme = isDark() ? "dark" : "light";
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
}
const drawAll = () => Promise.all(figures.map(draw));

themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  chosenTheme = isDark() ? "light" : "dark";
  applyTheme();
  drawAll();
});
darkScheme.addEventListener("change", () => { applyTheme(); drawAll(); });
let narrow = small();
window.addEventListener("resize", () => {
  if (small() === narrow) return;
  narrow = small();
  drawAll();
});
// Paper is light and narrow, and all is drawn anew for it. Surfaces cannot be drawn in time: they
// keep their size and colours, and get the dark ground that belongs to them (page.css).
window.addEventListener("beforeprint", () => {
  const mesh = (figure) => figure.kind === "surface" && !figure.state.flat;
  for (const figure of figures) {
    const zoom = Math.min(1, paperWidth / (mesh(figure) ? figure.element.offsetWidth : printedWidth));
    figure.element.style.setProperty("--print-zoom", String(zoom));
  }
  if (isDark()) root.dataset.surfaces = "dark";
  printing = true;
  applyTheme();
  figures.filter((figure) => !mesh(figure)).forEach(draw);
});
window.addEventListener("afterprint", () => {
  if (!printing) return;
  printing = false;
  delete root.dataset.surfaces;
  applyTheme();
  drawAll();
});

applyTheme();
for (const figure of figures) {
  if (figure.kind === "surface" && !webgl) figure.state.flat = true;
  addViews(figure);
  addNumbers(figure);
}
drawAll().then(() => { root.dataset.ready = "true"; });
})();
