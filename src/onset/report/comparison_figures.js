// The kinds of figures that compare models, and masks of one model. Their data:
// comparison_figures.cpp and ablation_figures.cpp.
"use strict";
(window.onsetKinds = window.onsetKinds || []).push((tools) => {
const {colour, small, number, plain, axis, layout, chooser} = tools;

const tones = ["first", "second", "ffn", "median", "third", "accent"];
const dashes = ["solid", "dot", "dash", "longdash", "dashdot"];
const depthAxis = () => axis("share of the blocks", {range: [-0.02, 1.04], dtick: 0.25});

function depth(data, state) {
  return state.magnitudes ? magnitudes(data) : dots(data);
}

function dots(data) {
  const models = data.models.filter((model) => model.me_layer !== null);
  const name = (model) => {
    const letters = Array.from(model.name);
    const most = small() ? 14 : 28;
    return plain(letters.length > most ? letters.slice(0, most - 1).join("") + "\u2026" : model.name);
  };
  const row = (model) => data.models.indexOf(model);
  const at = (model, layer) => (layer + 1) / model.layers;
  const traces = models.map((model) => ({
    type: "scatter", mode: "lines", x: [at(model, model.me_layer), at(model, model.last_massive_layer)], y: [row(model), row(model)],
    line: {color: colour("third"), width: 6}, hoverinfo: "skip", showlegend: false,
  }));
  traces.push({
    type: "scatter", mode: "markers+text", x: models.map((model) => at(model, model.me_layer)), y: models.map(row), marker: {size: 14, color: colour("first")}, showlegend: false,
    text: models.map((model) => `${model.me_layer} of ${model.layers}`), textposition: "top center", textfont: {size: small() ? 11 : 13}, cliponaxis: false,
    hovertemplate: models.map((model) => `<b>${plain(model.name)}</b><br>ME layer ${model.me_layer}, block ${model.me_layer + 1} of ${model.layers}<br>massive to layer ${model.last_massive_layer}<extra></extra>`),
  });
  const without = data.models.filter((model) => model.me_layer === null);
  traces.push({
    type: "scatter", mode: "text", x: without.map(() => 0), y: without.map(row), text: without.map(() => "no ME layer"), textposition: "middle right", textfont: {color: colour("median"), size: small() ? 11 : 13},
    hoverinfo: "skip", showlegend: false,
  });
  return {
    height: 110 + data.models.length * 56,
    traces,
    layout: layout({
      xaxis: depthAxis(),
      yaxis: axis("", {tickvals: data.models.map((_, i) => i), ticktext: data.models.map(name), range: [data.models.length - 0.4, -0.7], zeroline: false}),
      margin: small() ? {l: 100, r: 12, t: 16, b: 44} : {l: 190, r: 24, t: 20, b: 52},
    }),
  };
}

function magnitudes(data) {
  return {
    height: 440,
    traces: data.models.map((model, i) => ({
      type: "scatter", mode: "lines+markers", name: plain(model.name), x: model.largest.map((_, l) => (l + 1) / model.layers), y: model.largest.map((x) => (x > 0 ? x : null)),
      line: {color: colour(tones[i % tones.length]), width: 2.4, dash: dashes[Math.floor(i / tones.length) % dashes.length]},
      marker: {size: model.largest.map((_, l) => (l === model.me_layer ? 12 : 4))},
      text: model.largest.map((x, l) => `<b>${plain(model.name)}</b><br>after layer ${l}: ${number(x)}`), hovertemplate: "%{text}<extra></extra>",
    })),
    layout: layout({xaxis: depthAxis(), yaxis: axis("largest |x|", {type: "log", exponentformat: "power", dtick: 1}), showlegend: true}),
  };
}

// ---- masks of one model: ablation_figures.cpp

// Points of one series, each with the interval of its difference from the baseline.
function scores(series, mode, words) {
  const points = series.points.slice().sort((a, b) => a.x - b.x);
  return {
    type: "scatter", mode, name: plain(series.name), x: points.map((point) => point.x), y: points.map((point) => point.y),
    error_y: {
      type: "data", symmetric: false, array: points.map((point) => (point.high === null ? 0 : point.high - point.y)),
      arrayminus: points.map((point) => (point.low === null ? 0 : point.y - point.low)), color: colour(series.tone), thickness: 1.2, width: 4,
    },
    line: {color: colour(series.tone), width: 2.2, dash: series.random ? "dot" : "solid"}, marker: {size: 8, color: colour(series.tone)},
    text: points.map((point) => `${words(point, series)}: ${number(point.y)}` +
      (point.low === null ? "" : ` (${number(point.low)} to ${number(point.high)})`) + `<br>corrected p ${number(point.p)}, ${point.n} items`),
    hovertemplate: "%{text}<extra></extra>",
  };
}

const above = () => ({orientation: "h", x: 0, y: 1.06, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)"});

function ablation(data, state) {
  const column = data.columns[state.column || 0];
  const series = column.views[data.views[state.view || 0]] || [];
  const xs = series.flatMap((one) => one.points.map((point) => point.x));
  const least = Math.min(...xs);
  const most = Math.max(...xs);
  const room = 0.06 * (most - least || most || 1);
  const ends = [least - room, most + room];
  const traces = series.map((one) => scores(one, "lines+markers", (point, of) => `${plain(of.name)}, ${data.size} ${number(point.x)}`));
  traces.push({
    type: "scatter", mode: "lines", name: "no mask", x: ends, y: [column.baseline, column.baseline], line: {color: colour("ink"), width: 1.4, dash: "dash"},
    hovertemplate: `no mask: ${number(column.baseline)}<extra></extra>`,
  });
  return {
    height: small() ? 440 : 480,
    traces,
    layout: layout({
      xaxis: axis(data.size === "k" ? "masked dims (k)" : "share of dims that is masked (rate)", {range: ends}),
      yaxis: axis(plain(column.unit)), showlegend: true, legend: above(),
    }),
  };
}

function ablationSinks(data, state) {
  const column = data.columns[state.column || 0];
  const traces = column.series.map((one) => scores(one, "markers", (point) => `${plain(point.name)}<br>sinks ${number(point.x)} %, score`));
  traces.push({
    type: "scatter", mode: "markers", name: "no mask", x: [data.baseline_sinks], y: [column.baseline], marker: {size: 13, symbol: "diamond", color: colour("ink")},
    hovertemplate: `no mask: ${number(column.baseline)}, sinks ${number(data.baseline_sinks)} %<extra></extra>`,
  });
  return {
    height: small() ? 440 : 480,
    traces,
    layout: layout({xaxis: axis("heads that are first-token sinks, %"), yaxis: axis(plain(column.unit)), showlegend: true, legend: above()}),
  };
}

const pick = (place, names, label, figure, field, redraw) => {
  figure.state[field] = figure.state[field] || 0;
  chooser(place, names, label, figure.state[field], (i) => { figure.state[field] = i; redraw(); });
};
const columnNames = (figure) => figure.data.columns.map((column) => column.name);

return {
  depth: {draw: depth, views: () => [{field: "magnitudes", names: ["Depth", "Magnitudes"]}]},
  ablation: {draw: ablation, views: () => [], controls: (place, figure, redraw) => {
    pick(place, columnNames(figure), "score", figure, "column", redraw);
    pick(place, figure.data.views, "mask", figure, "view", redraw);
  }},
  ablation_sinks: {draw: ablationSinks, views: () => [], controls: (place, figure, redraw) =>
    pick(place, columnNames(figure), "score", figure, "column", redraw)},
};
});
