// Reads the numbers of a page: blocks of weights in base64, and maps made of them; needs page_tools.js.

heed.bytes = (base64) => {
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let at = 0; at < text.length; ++at) out[at] = text.charCodeAt(at);
  return out;
};
heed.words = (base64) => new Uint16Array(heed.bytes(base64).buffer);

// Numbers [heads, rows, columns], decoded when they are first asked for. at() is NaN where a number is not
// finite, and undefined where it was left out because larger ones of its row were kept: its size is below
// bound() then.
heed.Block = class {
  constructor(json) {
    Object.assign(this, json);
    [this.heads, this.rows, this.columns] = json.shape;
    this.isComplete = json.code !== 'top';
  }
  decode() {
    if (this.code === 'f32') {
      this.numbers = new Float32Array(heed.bytes(this.bytes).buffer);
    } else {
      this.codes = heed.words(this.bytes);
      if (this.code === 'top') {
        this.places = heed.words(this.places);
        this.rest = new heed.Block(this.rest);
      }
    }
    this.bytes = null;
  }
  number(code) {
    return code === 65535 ? NaN : this.low + (this.high - this.low) * code / 65534;
  }
  at(head, i, j) {
    if (this.bytes !== null) this.decode();
    const row = head * this.rows + i;
    if (this.numbers) return this.numbers[row * this.columns + j];
    if (this.code === 'u16') return this.number(this.codes[row * this.columns + j]);
    let low = row * this.count, high = low + this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.places[middle] < j)
        low = middle + 1;
      else
        high = middle;
    }
    return low < (row + 1) * this.count && this.places[low] === j ? this.number(this.codes[low]) : undefined;
  }
  // The size below which the numbers lie that a row left out; 0 where it has all of them.
  bound(head, i) {
    if (this.isComplete) return 0;
    if (this.bytes !== null) this.decode();
    return this.rest.at(head, i, 0);
  }
};
heed.block = (json) => (json ? new heed.Block(json) : null);

// What can be shown of a map: its weights, and where it has them, weight times gradient and the rollout of
// the layers.
heed.Layered = class {
  constructor(json) {
    this.view = heed.block(json.view);
    this.whole = heed.block(json.whole);
    this.heads = this.view.heads;
  }
  // Of tiles, where the map is long. The head after the last one is the mean of all.
  at(head, i, j) {
    return this.mean(this.view, head, i, j);
  }
  mean(block, head, i, j) {
    if (head < this.heads) return block.at(head, i, j);
    let sum = 0;
    for (let h = 0; h < this.heads; ++h) sum += block.at(h, i, j) || 0;
    return sum / this.heads;
  }
  // A single number of a long map; undefined where the page has only a bound on it.
  single(head, i, j) {
    return this.whole ? this.mean(this.whole, head, i, j) : this.at(head, i, j);
  }
  bound(head, i) {
    if (!this.whole || this.whole.isComplete) return 0;
    if (head < this.heads) return this.whole.bound(head, i);
    let most = 0;
    for (let h = 0; h < this.heads; ++h) most = Math.max(most, this.whole.bound(h, i));
    return most;
  }
  // The largest magnitude, of which colours are shares.
  largest(head) {
    this.tops ||= [];
    if (this.tops[head] === undefined) {
      let most = 0;
      for (let i = 0; i < this.view.rows; ++i)
        for (let j = 0; j < this.view.columns; ++j) most = Math.max(most, Math.abs(this.at(head, i, j)) || 0);
      this.tops[head] = most || 1;
    }
    return this.tops[head];
  }
};

// The number of a layered map's view that a hundredth of its magnitudes above zero exceed: colours of long
// maps, whose first rows have few keys and so large weights, go up to it.
heed.Layered.prototype.common = function common(head) {
  this.commons ||= [];
  if (this.commons[head] === undefined) {
    const sizes = [];
    for (let i = 0; i < this.view.rows; ++i)
      for (let j = 0; j < this.view.columns; ++j) sizes.push(Math.abs(this.at(head, i, j)) || 0);
    const some = Float32Array.from(sizes.filter((size) => size > 0)).sort();
    this.commons[head] = some[Math.floor(some.length * 0.99)] || 1;
  }
  return this.commons[head];
};

heed.kindNames = {
  'encoder self': 'Encoder self',
  'decoder self': 'Decoder self',
  'cross': 'Cross'
};
heed.shownNames = {
  weights: 'Weights',
  attribution: 'Attribution',
  rollout: 'Rollout'
};
heed.isSpecial = (token) => /^(\[[A-Za-z]+\]|<\/?[A-Za-z]+>)$/.test(token);

// One map with its tokens. `rows` and `columns` label what is drawn first: tokens, or tiles of a long map.
heed.Map = class {
  constructor(json, page) {
    Object.assign(this, json);
    this.queryTokens = page.tokens[json.rows];
    this.keyTokens = page.tokens[json.columns];
    this.isTiled = this.tile[0] > 1 || this.tile[1] > 1;
    this.isSame = json.rows === json.columns && json.kind !== 'cross';
    this.rowLabels = this.labels(this.queryTokens, this.tile[0]);
    this.columnLabels = this.labels(this.keyTokens, this.tile[1]);
    for (const shown of ['weights', 'attribution', 'rollout'])
      this[shown] = json[shown] ? new heed.Layered(json[shown]) : null;
    this.received = heed.block(json.received);
    this.picture = json.picture === null ? null : page.pictures[json.picture];
    if (json.factors)
      this.factors = {
        ...json.factors,
        queries: heed.block(json.factors.queries),
        keys: heed.block(json.factors.keys)
      };
  }
  labels(tokens, tile) {
    if (tile === 1) return tokens;
    const count = Math.ceil(tokens.length / tile);
    return Array.from({length: count}, (_, at) => {
      const first = at * tile, last = Math.min(first + tile, tokens.length) - 1;
      return first === last ? String(first) : `${first}–${last}`;
    });
  }
  has(shown) {
    return Boolean(this[shown]);
  }
  // The largest weight of all heads.
  most() {
    return Math.max(...Array.from({length: this.heads}, (_, head) => this.weights.largest(head)));
  }
  // True where no weight would be seen on a scale from 0 to 1.
  isFaint() {
    return !this.isTiled && this.most() < 0.2;
  }
  // Single numbers can be read, be it that small ones have only a bound.
  hasSingles(shown) {
    return !this.isTiled || Boolean(this[shown]?.whole);
  }
  // The head's row sums, [smallest, largest]; of the mean of the heads, those of its heads.
  sumRange(head) {
    const ranges = head < this.heads ? [this.sums[head]] : this.sums;
    return [Math.min(...ranges.map((one) => one[0])), Math.max(...ranges.map((one) => one[1]))];
  }
};
