// The kind of figure that compares models. Its data: comparison_figures.cpp.
"use strict";
(window.onsetKinds = window.onsetKinds || []).push((tools) => {
const {colour, small, number, plain, axis, layout} = tools;

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

return {depth: {draw: depth, views: () => [{field: "magnitudes", names: ["Depth", "Magnitudes"]}]}};
});
