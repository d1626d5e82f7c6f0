// The kinds of figures of a training run. Their data: training_figures.cpp.
"use strict";
(window.onsetKinds = window.onsetKinds || []).push((tools) => {
const {colour, colourScale, isDark, small, number, plain, axis, layout} = tools;

const tones = ["first", "second", "ffn", "median", "third", "accent"];
const dashes = ["solid", "dot", "dash", "longdash", "dashdot"];
const above = () => ({orientation: "h", x: 0, y: 1.04, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)"});
const stepAxis = () => axis("step", {rangemode: "tozero"});

function curves(data) {
  const log = data.logarithmic;
  const value = (x) => (x === null || (log && !(x > 0)) ? null : x);
  const traces = data.series.flatMap((one, i) => {
    const tone = colour(tones[i % tones.length]);
    const dash = dashes[Math.floor(i / tones.length) % dashes.length];
    const smooth = one.smooth !== null;
    const hover = one.values.map((y, k) => `<b>${plain(one.name)} ${number(y)}</b><br>step ${number(one.steps[k])}` + (smooth ? `<br>running mean ${number(one.smooth[k])}` : ""));
    const values = {
      type: "scatter", mode: one.steps.length === 1 ? "markers" : "lines", name: plain(one.name), legendgroup: one.name, showlegend: !smooth,
      x: one.steps, y: one.values.map(value), text: hover, hovertemplate: "%{text}<extra></extra>",
      line: {color: tone, width: smooth ? 1 : 2.2, dash}, opacity: smooth ? 0.4 : 1, marker: {size: 9, color: tone},
    };
    if (!smooth) return [values];
    return [values, {
      type: "scatter", mode: "lines", name: plain(one.name), legendgroup: one.name, x: one.steps, y: one.smooth.map(value),
      line: {color: tone, width: 2.6, dash}, hoverinfo: "skip",
    }];
  });
  return {
    height: small() ? 340 : 380,
    traces,
    layout: layout({
      xaxis: stepAxis(), yaxis: axis(plain(data.axis), log ? {type: "log", exponentformat: "power"} : {exponentformat: "power"}),
      showlegend: data.series.length > 1, legend: above(),
    }),
  };
}

const watch = (data, state) => (state.lines ? watchLines(data) : watchMap(data));
const layersOf = (data) => (data.max_abs.length > 0 ? data.max_abs[0].map((_, l) => l) : []);

function watchMap(data) {
  const layers = layersOf(data);
  const values = data.max_abs.flat().filter((x) => x > 0);
  const low = Math.log10(values.length > 0 ? Math.min(...values) : 1);
  const high = Math.max(low + 1, Math.log10(values.length > 0 ? Math.max(...values) : 10));
  const powers = [];
  for (let p = Math.ceil(low); p <= high; ++p) powers.push(p);
  const z = layers.map((l) => data.max_abs.map((column) => (column[l] > 0 ? Math.log10(column[l]) : null)));
  const text = layers.map((l) => data.max_abs.map((column, s) => `<b>|x| ${number(column[l])}</b><br>after layer ${l}, step ${data.steps[s]}` +
    (data.me_layer[s] === null ? "<br>no ME layer" : `<br>ME layer ${data.me_layer[s]}`)));
  const dots = data.steps.map((step, s) => [step, data.me_layer[s]]).filter((dot) => dot[1] !== null);
  const first = data.steps[0];
  const last = data.steps[data.steps.length - 1];
  const half = (last - first || 1) / Math.max(1, data.steps.length - 1) / 2;  // of a column
  return {
    height: small() ? 380 : 460,
    traces: [{
      type: "heatmap", x: data.steps, y: layers, z, text, hovertemplate: "%{text}<extra></extra>", zmin: low, zmax: high, colorscale: colourScale(),
      colorbar: {title: {text: "|x|", side: "top"}, tickvals: powers, ticktext: powers.map((p) => number(10 ** p)), thickness: small() ? 8 : 12, outlinewidth: 0},
    }, {
      type: "scatter", mode: "markers", name: "ME layer", x: dots.map((dot) => dot[0]), y: dots.map((dot) => dot[1]),
      marker: {size: dots.length > (small() ? 20 : 60) ? 5 : 9, color: colour("paper"), line: {color: colour("ink"), width: 1.5}}, hoverinfo: "skip", showlegend: dots.length > 0,
    }],
    layout: layout({
      xaxis: axis("step", {showgrid: false, range: [first - half, last + half]}), yaxis: axis("layer", {showgrid: false, range: [-0.5, layers.length - 0.5], dtick: layers.length > 16 ? 5 : 1}), legend: above(),
    }),
  };
}

function watchLines(data) {
  const layers = layersOf(data);
  // From blue, the first layer, to red, the last.
  const tone = (l) => `hsl(${Math.round(210 - 195 * (layers.length > 1 ? l / (layers.length - 1) : 0))}, 62%, ${isDark() ? 62 : 44}%)`;
  return {
    height: small() ? 380 : 460,
    traces: layers.map((l) => ({
      type: "scatter", mode: data.steps.length === 1 ? "markers" : "lines", name: `layer ${l}`, x: data.steps, y: data.max_abs.map((column) => (column[l] > 0 ? column[l] : null)),
      line: {color: tone(l), width: 2}, marker: {color: tone(l)}, hovertemplate: `layer ${l}, step %{x}: %{y:.5~g}<extra></extra>`,
      showlegend: layers.length <= 8 || l === 0 || l === layers.length - 1,
    })),
    layout: layout({xaxis: stepAxis(), yaxis: axis("largest |x|", {type: "log", exponentformat: "power", dtick: 1}), showlegend: true, legend: above()}),
  };
}

return {
  training_curves: {draw: curves, views: () => []},
  training_watch: {draw: watch, views: () => [{field: "lines", names: ["Heat map", "Lines"]}]},
};
});
