/**
 * @module
 * The rules on a shorter scale of time, so that an alert that waits for minutes fires in seconds.
 * Only durations change: thresholds, selectors and labels are those of otel/rules.yaml.
 */
import { isMap, isScalar, isSeq, parseDocument } from 'yaml';

/** How much faster time passes for the rules: five minutes take ten seconds. */
const FACTOR = 30;

const SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400 };

/** A duration of Prometheus, on the shorter scale. */
export const scaled = (duration: string): string => {
  const total = [...duration.matchAll(/(\d+)(ms|[smhd])/g)]
    .map(([, count, unit = 's']) => Number(count) * (SECONDS[unit] ?? 1))
    .reduce((sum, seconds) => sum + seconds, 0);
  return `${Math.round((total * 1_000) / FACTOR)}ms`;
};

/** Ranges, subqueries and offsets of an expression. */
const scaleExpression = (expression: string): string =>
  expression
    .replace(/\[([^\]]+)\]/g, (_, range: string) => `[${range.replace(/\d[\dsmhd]*/g, scaled)}]`)
    .replace(/\boffset (\d[\dsmhd]*)/g, (_, duration: string) => `offset ${scaled(duration)}`);

/** @throws Error when the text is no rules file */
export const scaleRules = (text: string): string => {
  const document = parseDocument(text);
  const groups = document.get('groups');
  if (!isSeq(groups)) throw new Error('the rules file has no groups');
  for (const group of groups.items) {
    if (!isMap(group)) continue;
    group.set('interval', '1s');
    const rules = group.get('rules');
    for (const rule of isSeq(rules) ? rules.items : []) {
      if (!isMap(rule)) continue;
      const expression = rule.get('expr', true);
      if (isScalar(expression)) expression.value = scaleExpression(String(expression.value));
      for (const key of ['for', 'keep_firing_for']) {
        const duration = rule.get(key, true);
        if (isScalar(duration)) duration.value = scaled(String(duration.value));
      }
    }
  }
  return document.toString({ lineWidth: 0 });
};
