/**
 * @module
 * Writes the tables of docs/configuration.md from the rules that settings are checked with and
 * the comments in the source: `npm run docs`. A test fails while the page says something else.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { httpSettings } from '../src/config-http.ts';
import { type PolicySettings, policyRules } from '../src/resilience/policy.ts';
import { presets } from '../src/resilience/presets.ts';
import { allowed, type Rule, type Rules } from '../src/resilience/settings.ts';
import { describePolicies } from '../src/tools/index.ts';

const root = dirname(import.meta.dirname);
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The page whose tables are made here. */
export const PAGE = 'docs/configuration.md';

/** First lines of the comments of the members of a block of source, by their names. */
const commentsIn = (file: string, opening: string, closing: string): Map<string, string> => {
  const [, block = ''] = read(file).split(opening);
  const members = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:readonly )?(\w+)\??:/g;
  return new Map(
    [...(block.split(closing)[0] ?? '').matchAll(members)].map(([, comment = '', name = '']) => [
      name,
      comment.replace(/\s*\n\s*\* ?/g, ' ').trim(),
    ]),
  );
};

const interfaceComments = (name: string, file = 'src/resilience/policy.ts') =>
  commentsIn(file, `export interface ${name} {\n`, '\n}');

const COMMENTS: Readonly<Record<string, Map<string, string>>> = {
  '': interfaceComments('PolicySettings'),
  rateLimit: interfaceComments('RateLimitSettings'),
  bulkhead: interfaceComments('BulkheadSettings'),
  'bulkhead.limit': interfaceComments('AdaptiveLimitSettings'),
  breaker: interfaceComments('BreakerSettings'),
  retry: interfaceComments('RetrySettings'),
  'retry.budget': interfaceComments('RetryBudgetSettings', 'src/resilience/retry-budget.ts'),
  hedge: interfaceComments('HedgeSettings'),
  cache: interfaceComments('CacheSettings'),
};
const HTTP_COMMENTS = commentsIn(
  'src/mcp/transports/http-settings.ts',
  'httpSettingsSchema = z.strictObject({\n',
  '\n});',
);

const code = (value: unknown): string =>
  `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const lines = [head, ...rows].map((cells) => cells.map((cell) => cell.replaceAll('|', '\\|')));
  const widths = head.map((_, column) =>
    Math.max(3, ...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  const rule = widths.map((width) => '-'.repeat(width));
  return lines
    .toSpliced(1, 0, rule)
    .map(
      (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`,
    )
    .join('\n');
};

const fallbackOf = (rule: Rule): string => {
  if (rule.kind === 'group') return '';
  if (rule.kind === 'number' && rule.required) return 'must be given';
  return rule.fallback === undefined ? '' : code(rule.fallback);
};

/** What the columns beside it do not say already. */
const meaningOf = (group: string, name: string, rule: Rule): string => {
  const comment = COMMENTS[group]?.get(name);
  if (comment === undefined) throw new Error(`no comment on ${group}.${name} was found`);
  const hasFallback = rule.kind !== 'group' && rule.fallback !== undefined;
  return comment
    .replace(/,? (?:above )?\d[\d .]* to \d[\d .]*?(?=[,.] |[,.]$)/, '')
    .replace(hasFallback ? / Default:? (?:`\w+`|[\d .]+|true|false)\.$/ : /^$/, '');
};

const policyRows = (rules: Rules, group = ''): string[][] =>
  Object.entries(rules).flatMap(([name, rule]) => {
    const path = group === '' ? name : `${group}.${name}`;
    const inner = rule.kind === 'group' ? rule.rules : rule.kind === 'number' ? rule.instead : {};
    // A whole policy has a heading of its own, not a row.
    const isPolicy = group === '' && rule.kind === 'group';
    const own = isPolicy
      ? []
      : [[code(path), allowed(rule), fallbackOf(rule), meaningOf(group, name, rule)]];
    return [...own, ...policyRows(inner ?? {}, path)];
  });

const POLICY_HEAD = ['setting', 'allowed', 'default', 'meaning'];

const policyTables = (): string =>
  [
    table(POLICY_HEAD, policyRows({ ...pick(policyRules, ({ kind }) => kind !== 'group') })),
    ...Object.entries(policyRules)
      .filter(([, { kind }]) => kind === 'group')
      .map(([name, rule]) => {
        const head = read('src/resilience/policy.ts');
        const interfaceName = new RegExp(`readonly ${name}\\?: (\\w+) \\|`).exec(head)?.[1];
        const doc = `/\\*\\*\\n \\* ([^\\n]*)\\n \\*\\n(?: \\*[^\\n]*\\n)*? \\*/\\n`;
        const [, sentence] =
          new RegExp(`${doc}export interface ${interfaceName} `).exec(head) ?? [];
        if (sentence === undefined) throw new Error(`no comment on ${interfaceName} was found`);
        return `#### ${code(name)}\n\n${sentence}\n\n${table(POLICY_HEAD, policyRows({ [name]: rule }))}`;
      }),
  ].join('\n\n');

const pick = (rules: Rules, wanted: (rule: Rule) => boolean): Rules =>
  Object.fromEntries(Object.entries(rules).filter(([, rule]) => wanted(rule)));

const SUMMARY_HEAD = [
  'failures to open',
  'open time',
  'retries',
  'base backoff',
  'rate',
  'attempt timeout',
  'deadline',
];

/** One row of numbers that say what a policy is like; durations in milliseconds. */
const summary = ({ breaker, retry, rateLimit, timeout, deadline }: PolicySettings): string[] =>
  [
    breaker ? breaker.threshold : undefined,
    breaker ? breaker.openDuration : undefined,
    retry ? retry.maxRetries : undefined,
    retry ? retry.baseDelay : undefined,
    rateLimit ? `${rateLimit.limit} per ${rateLimit.interval}` : undefined,
    timeout,
    deadline,
  ].map((value) => (value === undefined ? 'none' : String(value)));

const presetTable = (): string =>
  table(
    ['preset', ...SUMMARY_HEAD],
    Object.entries(presets).map(([name, policy]) => [code(name), ...summary(policy)]),
  );

const toolTable = (): string =>
  table(
    [
      'tool',
      'dependency',
      ...SUMMARY_HEAD,
      'calls at one time',
      'answers kept',
      'kept for failures',
    ],
    describePolicies().map(({ tool, dependency, policy }) => [
      code(tool),
      code(dependency),
      ...summary(policy),
      policy.bulkhead ? String(policy.bulkhead.limit) : 'any number',
      policy.cache ? String(policy.cache.ttl) : 'no',
      policy.cache ? String(policy.cache.staleIfError) : 'no',
    ]),
  );

/** Settings of a group need a comment of their own or stand for themselves. */
const HTTP_GROUPS: Readonly<Record<string, string>> = {
  'rateLimit.limit': 'Requests per `interval`.',
  'rateLimit.interval': 'Milliseconds over which `limit` requests are allowed.',
  'rateLimit.burst': 'Requests allowed at once after a quiet time.',
};

const httpTable = (): string =>
  table(
    POLICY_HEAD,
    httpSettings.map(({ name, allowed: range, fallback }) => {
      const meaning = HTTP_COMMENTS.get(name) ?? HTTP_GROUPS[name];
      if (meaning === undefined) throw new Error(`no comment on http.${name} was found`);
      return [
        code(name),
        range,
        fallback === undefined ? 'must be given' : code(fallback),
        meaning,
      ];
    }),
  );

const TABLES: Readonly<Record<string, () => string>> = {
  tools: toolTable,
  presets: presetTable,
  policies: policyTables,
  http: httpTable,
};

/** The page with its tables made anew; everything else stays as it is. */
export const render = (page: string): string =>
  Object.entries(TABLES).reduce((text, [name, make]) => {
    const [begin, end] = [`<!-- ${name}: made by npm run docs -->`, `<!-- ${name}: end -->`];
    const [head, rest] = text.split(begin);
    const tail = rest?.split(end)[1];
    if (head === undefined || tail === undefined)
      throw new Error(`${PAGE} has no place for ${name}`);
    return `${head}${begin}\n\n${make()}\n\n${end}${tail}`;
  }, page);

if (process.argv[1] === import.meta.filename) writeFileSync(join(root, PAGE), render(read(PAGE)));
