// SPDX-License-Identifier: MIT
// The flame graph of the samples in view, or of where tasks waited: callers above, called functions below.

const FLAME_ROW = 18;

class Flame {
  constructor(capture, page) {
    this.capture = capture;
    this.page = page;
    this.canvas = byId('flame');
    this.box = byId('flame-scroll');
    this.root = 0;
    this.cursor = 0;
    this.boxes = [];
    this.makeWaits();
    this.makeTree();
    this.makeWeights();
    this.makeIdle();
    this.canvas.addEventListener('click', event => {
      const node = this.at(event);
      if (node !== undefined) this.zoom(node);
    });
    this.canvas.addEventListener('mousemove', event => {
      const node = this.at(event);
      byId('flame-at').textContent = node === undefined ? '' : this.describe(node);
    });
    this.box.addEventListener('keydown', event => this.key(event));
    this.box.addEventListener('scroll', () => this.draw());
  }

  // A wait that began without a call chain has a node that says how it began, as in the other formats.
  makeWaits() {
    const { frames, nodes, parents } = this.capture;
    this.waits = this.page.tasks.waits || [];
    this.haveChains = this.waits.some(wait => wait.node);
    if (!this.waits.length) return;
    this.unknown = ['[preempted]', '[blocked]'].map(name => {
      frames.push([name, 'no call chain', 0]);
      parents.push(0);
      return nodes.push(frames.length - 1) - 1;
    });
  }

  // Children of each node, by name. Children have higher numbers than their parents.
  makeTree() {
    const { parents } = this.capture;
    this.children = new Map();
    for (let i = 1; i < parents.length; i++) {
      const list = this.children.get(parents[i]);
      if (list) list.push(i);
      else this.children.set(parents[i], [i]);
    }
    for (const list of this.children.values()) list.sort((a, b) => this.name(a) < this.name(b) ? -1 : 1);
  }

  makeWeights() {
    const select = byId('weight'), counter = this.capture.counters[0];
    const { thinned } = this.capture, weighed = counter && (thinned ? thinned.weighed : this.capture.cpus.some(cpu => cpu.samples.weight.some(weight => weight >= 0)));
    if (weighed) select.append(element('option', { value: 'weight' }, counter));
    select.append(element('option', { value: 'samples' }, 'samples'));
    if (this.waits.length) select.append(element('option', { value: 'waits' }, 'waiting time'));
    else if (thinned) select.append(element('option', { value: 'waits', disabled: true }, 'waiting time: not in a thinned page'));
    select.hidden = select.options.length === 1;
    select.addEventListener('change', () => this.update());
  }

  // The idle loop is no work: its samples are left out unless they are asked for, as in a report.
  makeIdle() {
    const idle = new Set(this.capture.idle);
    this.isIdle = Uint8Array.from(this.capture.nodes, (frame, node) => node && idle.has(frame) ? 1 : 0);
    byId('idle').hidden = !idle.size;
    byId('with-idle').addEventListener('change', () => this.update());
  }

  name(node) { return node ? this.capture.frames[this.capture.nodes[node]][0] : 'all'; }

  get ofWaits() { return byId('weight').value === 'waits'; }

  // Of each wait the part in view, at the call chain with which it began.
  sumWaits(start, end) {
    const { page } = this;
    for (const wait of this.waits) {
      const length = Math.min(wait.end, end) - Math.max(wait.start, start);
      if (length > 0 && (page.chosen === undefined || page.isLit(wait.task))) this.self[wait.node || this.unknown[wait.how - 1]] += length;
    }
  }

  // As in the other formats, a sample without a counter value has the mean weight.
  sumSamples(start, end) {
    const { capture, page } = this, nr = capture.parents.length, byWeight = byId('weight').value === 'weight';
    let weight = 0, weighed = 0;
    const unweighed = new Float64Array(nr), sums = capture.thinned && !capture.thinned.isFull ? capture.thinned.sumsOf(start, end) : null;
    if (sums) {
      const calls = finished(sums.calls);
      for (let i = 0; i < calls.node.length; i++) {
        const node = calls.node[i];
        if (page.chosen !== undefined && !page.isLit(calls.task[i])) continue;
        if (!byWeight) {
          this.self[node] += calls.samples[i];
          continue;
        }
        unweighed[node] += calls.unweighed[i];
        this.self[node] += calls.weight[i];
        weight += calls.weight[i];
        weighed += calls.samples[i] - calls.unweighed[i];
      }
    }
    for (const { samples } of sums ? [] : capture.cpus) {
      const to = end >= capture.length ? samples.time.length : lowerBound(samples.time, end);
      for (let i = lowerBound(samples.time, start); i < to; i++) {
        if (page.chosen !== undefined && !page.isLit(samples.task[i])) continue;
        if (!byWeight) this.self[samples.node[i]]++;
        else if (samples.weight[i] < 0) unweighed[samples.node[i]]++;
        else {
          this.self[samples.node[i]] += samples.weight[i];
          weight += samples.weight[i];
          weighed++;
        }
      }
    }
    if (byWeight) for (let i = 0; i < nr; i++) this.self[i] += unweighed[i] * (weighed ? Math.floor(weight / weighed) : 1);
  }

  sum(start, end) {
    const { capture } = this, nr = capture.parents.length;
    this.self = new Float64Array(nr);
    if (this.ofWaits) this.sumWaits(start, end);
    else this.sumSamples(start, end);
    this.idle = 0;
    if (!byId('with-idle').checked) for (let i = 0; i < nr; i++) {
      if (!this.isIdle[i]) continue;
      this.idle += this.self[i];
      this.self[i] = 0;
    }
    this.total = this.self.slice();
    for (let i = nr - 1; i > 0; i--) this.total[capture.parents[i]] += this.total[i];
  }

  // What shares are of: that of the idle loop belongs to it, as in a report.
  get all() { return this.total[0] + this.idle; }

  update() {
    const { timeline } = this.page, { thinned } = this.capture;
    if (thinned && !thinned.isFull && !thinned.sumsOf(timeline.start, timeline.end)) {
      byId('flame-of').textContent = 'reading …';	// update() comes again
      return;
    }
    this.sum(timeline.start, timeline.end);
    while (this.root && !this.total[this.root]) this.root = this.capture.parents[this.root];
    this.say();
    this.draw();
  }

  // The part of what is shown that has a function that was searched for, as its callers have it.
  found() {
    const { nodes, parents } = this.capture, { page } = this;
    let sum = 0;
    for (let i = 1; i < nodes.length; i++)
      if (page.isSampleFound(i) && !page.isSampleFound(parents[i])) sum += this.total[i];
    return page.query && nodes.length > 1 ? `, ${(100 * sum / (this.all || 1)).toFixed(1)} % found` : '';
  }

  say() {
    const idle = this.idle ? `, without the idle loop (${(100 * this.idle / this.all).toFixed(1)} %)` : '';
    const why = this.ofWaits && !this.haveChains ? '; the task switches have no call chains: record with -g --off-cpu' : '';
    byId('flame-of').textContent = (this.all ? (this.page.chosen === undefined ? 'of all tasks' : `of ${this.page.nameOf(this.page.chosen)}`) + idle + this.found() : this.ofWaits ? 'nobody waits here' : 'no samples here') + why;
  }

  // Frames narrower than half a pixel are left out.
  draw() {
    const width = this.box.clientWidth, { capture } = this, boxes = this.boxes = [];
    const lay = (node, x, depth, scale) => {
      const w = this.total[node] * scale;
      if (w < 0.5) return;
      boxes.push({ node, x, w, depth });
      let left = x;
      for (const child of this.children.get(node) || []) {
        lay(child, left, depth + 1, scale);
        left += this.total[child] * scale;
      }
    };
    const outer = [];
    for (let node = this.root; node; node = capture.parents[node]) outer.unshift(capture.parents[node]);
    outer.forEach((node, depth) => boxes.push({ node, x: 0, w: width, depth, outer: true }));
    if (this.total[this.root]) lay(this.root, 0, outer.length, width / this.total[this.root]);
    const deepest = boxes.reduce((most, box) => Math.max(most, box.depth), 0);
    const c = prepareCanvas(this.canvas, width, Math.max((deepest + 1) * FLAME_ROW + 4, 40));
    c.font = '11px system-ui, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    const top = this.box.scrollTop, bottom = top + this.box.clientHeight;
    for (const box of boxes) {
      const y = box.depth * FLAME_ROW;
      if (y + FLAME_ROW < top || y > bottom) continue;
      this.drawBox(c, box, y);
    }
  }

  drawBox(c, box, y) {
    const frame = box.node ? this.capture.frames[this.capture.nodes[box.node]] : ['all', '', 0];
    const found = box.node && this.page.matches(frame[0]), width = Math.max(0.5, box.w - 0.6);
    c.globalAlpha = box.outer ? 0.55 : 1;
    c.fillStyle = found ? colours.found : box.node ? frameColour(frame[0], frame[2]) : colours.idle;
    c.fillRect(box.x, y, width, FLAME_ROW - 1);
    if (box.node === this.cursor && document.activeElement === this.box) {
      c.strokeStyle = colours.ink;
      c.strokeRect(box.x + 0.5, y + 0.5, width - 1, FLAME_ROW - 2);
    }
    if (box.w > 22) {
      c.fillStyle = found ? colours.paper : colours.ink;
      c.fillText(fitText(c, frame[0], box.w - 7), box.x + 3, y + FLAME_ROW / 2);
    }
    c.globalAlpha = 1;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, depth = Math.floor((event.clientY - box.top) / FLAME_ROW);
    const hit = this.boxes.find(b => b.depth === depth && x >= b.x && x < b.x + b.w);
    return hit && hit.node;
  }

  describe(node) {
    const all = this.all || 1, unit = byId('weight').selectedOptions[0].textContent;
    const image = node ? `${this.capture.frames[this.capture.nodes[node]][1]}: ` : '';
    const total = this.ofWaits ? duration(this.total[node]) : amount(this.total[node]);
    return `${this.name(node)}: ${image}${(100 * this.total[node] / all).toFixed(2)} %, ${total} ${unit}; itself ${(100 * this.self[node] / all).toFixed(2)} %`;
  }

  zoom(node) {
    this.root = this.cursor = node;
    this.draw();
  }

  key(event) {
    const { parents } = this.capture, siblings = (this.children.get(parents[this.cursor]) || []).filter(n => this.total[n]);
    const below = (this.children.get(this.cursor) || []).filter(n => this.total[n]).sort((a, b) => this.total[b] - this.total[a]);
    const at = siblings.indexOf(this.cursor);
    const next = { ArrowUp: parents[this.cursor], ArrowDown: below[0], ArrowLeft: siblings[at - 1], ArrowRight: siblings[at + 1] }[event.key];
    if (event.key === 'Enter') this.zoom(this.cursor);
    else if (event.key === 'Escape' && this.root) this.zoom(0);
    else if (next !== undefined) this.cursor = next;
    else return;
    event.preventDefault();
    event.stopPropagation();
    byId('flame-at').textContent = this.describe(this.cursor);
    this.draw();
  }
}
