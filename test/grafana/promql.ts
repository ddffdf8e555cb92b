/**
 * @module
 * Reads PromQL far enough to tell what it names: series, labels, and what it groups by. No
 * grammar: promtool has that. What is here is a tokenizer and a walk over its tokens.
 */

interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

interface Selector {
  /** Name of the series, or each of them where `__name__` is matched with alternatives. */
  readonly names: readonly string[];
  readonly matchers: readonly Matcher[];
}

export interface Reading {
  readonly selectors: readonly Selector[];
  /** Labels of `by`, `on` and the like, each with its keyword. */
  readonly groups: readonly { readonly keyword: string; readonly labels: readonly string[] }[];
  /** Labels that `label_replace` makes. */
  readonly made: readonly string[];
  /** Text of each range in brackets. */
  readonly ranges: readonly string[];
  readonly functions: readonly string[];
}

interface Token {
  readonly kind: 'word' | 'string' | 'number' | 'range' | 'sign';
  readonly text: string;
}

const TOKEN =
  /\s+|#.*|(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)|(?<range>\[[^\]]*\])|(?<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:[a-z]+\d*)*)|(?<word>[a-zA-Z_:][\w:]*)|(?<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){},@])/gy;

const tokenize = (text: string): Token[] => {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw new Error(`not understood: ${text.slice(at, at + 20)}, in ${text}`);
    const [kind, found] =
      Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined) ?? [];
    if (kind !== undefined) tokens.push({ kind, text: found } as Token);
  }
  return tokens;
};

const GROUPING = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
const OPERATORS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'atan2']);
const AGGREGATIONS = new Set(['sum', 'min', 'max', 'avg', 'count', 'group', 'topk', 'quantile']);

const unquoted = (text: string): string => text.slice(1, -1).replace(/\\(.)/g, '$1');

/** @throws Error where brackets do not match or something is not understood */
export const read = (text: string): Reading => {
  const tokens = tokenize(text);
  const selectors: Selector[] = [];
  const groups: { keyword: string; labels: string[] }[] = [];
  const made: string[] = [];
  const ranges: string[] = [];
  const functions: string[] = [];
  let depth = 0;
  let at = 0;
  const next = (): Token | undefined => tokens[at];
  const take = (sign: string): void => {
    if (next()?.text !== sign)
      throw new Error(`"${sign}" expected before ${next()?.text}: ${text}`);
    at += 1;
  };
  const listOf = (end: string): Token[] => {
    const items: Token[] = [];
    for (let token = next(); token?.text !== end; token = next()) {
      if (token === undefined) throw new Error(`"${end}" is missing: ${text}`);
      items.push(token);
      at += 1;
    }
    at += 1;
    return items;
  };
  const matchersOf = (): Matcher[] => {
    take('{');
    const items = listOf('}').filter((token) => token.text !== ',');
    if (items.length % 3 !== 0) throw new Error(`a matcher is incomplete: ${text}`);
    return Array.from({ length: items.length / 3 }, (_, index) => {
      const [label, operator, value] = items
        .slice(index * 3, index * 3 + 3)
        .map((token) => token.text);
      return { label: label ?? '', operator: operator ?? '', value: unquoted(value ?? '""') };
    });
  };
  const addSelector = (name: string | undefined): void => {
    const matchers = next()?.text === '{' ? matchersOf() : [];
    const named = matchers.filter(({ label }) => label === '__name__');
    const names = name ? [name] : named.flatMap(({ value }) => value.split('|'));
    selectors.push({ names, matchers: matchers.filter((matcher) => !named.includes(matcher)) });
  };

  while (at < tokens.length) {
    const token = tokens[at] as Token;
    if (token.text === '{' && token.kind === 'sign') addSelector(undefined);
    else if (token.kind === 'word') {
      at += 1;
      if (GROUPING.has(token.text)) {
        if (next()?.text !== '(') continue;
        take('(');
        const labels = listOf(')').flatMap(({ kind, text: label }) =>
          kind === 'word' ? label : [],
        );
        groups.push({ keyword: token.text, labels });
      } else if (next()?.text === '(' && !OPERATORS.has(token.text)) {
        functions.push(token.text);
        if (token.text === 'label_replace') made.push(labelMadeBy(tokens, at));
      } else if (AGGREGATIONS.has(token.text) && GROUPING.has(next()?.text ?? '')) {
        functions.push(token.text);
      } else if (!OPERATORS.has(token.text)) addSelector(token.text);
    } else {
      if (token.kind === 'range') ranges.push(unquoted(token.text));
      if (token.text === '(') depth += 1;
      if (token.text === ')') depth -= 1;
      if (depth < 0) break;
      at += 1;
    }
  }
  if (depth !== 0) throw new Error(`brackets do not match: ${text}`);
  return { selectors, groups, made, ranges, functions };
};

/** Second argument of a `label_replace` whose opening bracket stands at `from`. */
const labelMadeBy = (tokens: readonly Token[], from: number): string => {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    const text = tokens[at]?.text;
    if (text === '(' || text === '{') depth += 1;
    if (text === ')' || text === '}') depth -= 1;
    if (text === ',' && depth === 1) return unquoted(tokens[at + 1]?.text ?? '""');
  }
  return '';
};
