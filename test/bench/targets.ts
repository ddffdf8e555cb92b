/**
 * @module
 * What the figures must show: bounds in microseconds that were set for Node 24, and ratios
 * within one run, which hold on any machine.
 */
import { type Size, TARGET } from '../../scripts/size.ts';
import { BREAKERS, KEYS, WINDOWS } from './variants/ours.ts';

/** Microseconds per call by the name of the variant. */
export type Figures = ReadonlyMap<string, number>;

/** One promise and what became of it. */
export interface Verdict {
  readonly promise: string;
  /** A ratio holds on any machine; a bound in microseconds or bytes is of one. */
  readonly kind: 'bound' | 'ratio';
  readonly met: boolean;
  readonly figures: string;
}

const us = (value: number): string => `${value.toFixed(value < 10 ? 2 : 1)} us`;

const of = (figures: Figures, name: string): number => {
  const figure = figures.get(name);
  if (figure === undefined) throw new Error(`"${name}" was not measured`);
  return figure;
};

const below = (figures: Figures, promise: string, name: string, bound: number): Verdict => {
  const figure = of(figures, name);
  return {
    promise,
    kind: 'bound',
    met: figure < bound,
    figures: `${us(figure)}, bound ${us(bound)}`,
  };
};

const ratio = (figures: Figures, promise: string, a: string, b: string, most: number): Verdict => {
  const [first, second] = [of(figures, a), of(figures, b)];
  return {
    promise,
    kind: 'ratio',
    met: first <= second * most,
    figures: `${us(first)} against ${us(second)}: ${(first / second).toFixed(2)}, bound ${most.toFixed(2)}`,
  };
};

/** Windows of the same breaker: the dearest against the cheapest, with room for noise. */
const flat = (figures: Figures, promise: string): Verdict => {
  const each = WINDOWS.map((size) => of(figures, `ours: failing call, window ${size}`));
  const spread = Math.max(...each) / Math.min(...each);
  return {
    promise,
    kind: 'ratio',
    met: spread <= 1.25,
    figures: `${each.map(us).join(', ')} for ${WINDOWS.join(', ')}: spread ${spread.toFixed(2)}, bound 1.25`,
  };
};

export const judge = (figures: Figures): Verdict[] => [
  below(
    figures,
    'the four-primitive pipeline costs under 1.5 us without an SDK',
    'ours: pipeline',
    1.5,
  ),
  ratio(
    figures,
    "it costs at most a quarter of cockatiel's wrap of the same four",
    'ours: pipeline',
    'cockatiel: wrap of the same four',
    0.25,
  ),
  ratio(
    figures,
    "the breaker alone is no slower than cockatiel's",
    'ours: breaker',
    'cockatiel: breaker',
    1,
  ),
  ratio(
    figures,
    "the breaker alone is no slower than opossum's",
    'ours: breaker',
    'opossum: breaker',
    1,
  ),
  below(figures, 'a refusal costs under 0.5 us', 'ours: refusal', 0.5),
  below(
    figures,
    'with metrics and an unsampled trace the pipeline costs under 2.5 us',
    'telemetry: pipeline in an unsampled span',
    2.5,
  ),
  below(
    figures,
    'with a recorded span the pipeline costs under 5 us',
    'telemetry: pipeline in a recorded span',
    5,
  ),
  flat(figures, "a failing call's cost does not grow with the window"),
  ratio(
    figures,
    'a call through one of 10 000 breakers costs at most twice that through the only one',
    `ours: ${BREAKERS} breakers`,
    'ours: breaker',
    2,
  ),
  ratio(
    figures,
    'a call with one of 100 000 limiter keys costs at most three times that with the only one (memory is further away than the cache)',
    `ours: rate limiter, ${KEYS} keys`,
    'ours: rate limiter',
    3,
  ),
];

/** Against the target; what stands in `scripts/size.ts` is what the check holds it to. */
export const judgeSize = ({ gzipped }: Size): Verdict => ({
  promise: `\`import { createPipeline }\`, bundled and minified without the OpenTelemetry API, stays under ${TARGET} kB gzipped`,
  kind: 'bound',
  met: gzipped < TARGET * 1_000,
  figures: `${(gzipped / 1_000).toFixed(1)} kB`,
});
