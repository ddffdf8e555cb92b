/**
 * @module
 * The API of wttr.in (`format=j1`): the shape of its answers, and what it means when it does
 * not know a place. Its numbers come as strings.
 */
import { z } from 'zod';
import { createFailure, ResilienceError } from '../resilience/failure.ts';
import { withPrivatePath } from '../telemetry/http-privacy.ts';
import { fetchJson, InvalidAnswerError, UpstreamStatusError } from './upstream.ts';

/** What is read of a report. */
export interface Report {
  readonly temperatureC: number;
  readonly feelsLikeC?: number;
  readonly description: string;
  readonly humidityPercent: number;
  readonly windKph: number;
  /** `YYYY-MM-DDTHH:mm`, the local time of the place. */
  readonly observedAt?: string;
  /** The place that wttr.in took the name for: `Tokyo, Japan`. */
  readonly location?: string;
}

/** A number within bounds, written as wttr.in does; nothing else is guessed from a text. */
const numeric = (min: number, max: number) =>
  z.union([z.string(), z.number()]).transform((value, context) => {
    const number = typeof value === 'number' || /^-?\d+(?:\.\d+)?$/.test(value) ? +value : NaN;
    if (number >= min && number <= max) return number;
    context.addIssue({ code: 'custom', message: `must be a number from ${min} to ${max}` });
    return z.NEVER;
  });

const texts = z.array(z.object({ value: z.string() }));

const condition = z.object({
  temp_C: numeric(-100, 70),
  FeelsLikeC: numeric(-150, 100).optional().catch(undefined),
  humidity: numeric(0, 100),
  windspeedKmph: numeric(0, 500),
  weatherDesc: texts.min(1),
  localObsDateTime: z.string().optional().catch(undefined),
});

const area = z.object({ areaName: texts.min(1), country: texts.optional() });

const report = z.object({
  current_condition: z.array(condition).min(1),
  nearest_area: z.array(area).optional().catch(undefined),
});

/** For some weeks of 2026 everything stood under `data` (chubin/wttr.in#1194). */
const unwrap = (answer: unknown): unknown =>
  typeof answer === 'object' && answer !== null && 'data' in answer ? answer.data : answer;

const oneLine = (text: string | undefined): string =>
  (text ?? '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, 200);

const LOCAL = /^(\d{4}-\d\d-\d\d) (0\d|1[0-2]):([0-5]\d) (AM|PM)$/;

/** `2026-04-20 01:28 PM` as `2026-04-20T13:28`. */
const localTime = (text: string | undefined): string | undefined => {
  const [, date, hours, minutes, half] = LOCAL.exec(text ?? '') ?? [];
  if (date === undefined) return undefined;
  const hour = (Number(hours) % 12) + (half === 'PM' ? 12 : 0);
  return `${date}T${String(hour).padStart(2, '0')}:${minutes}`;
};

const schema: z.ZodType<Report> = z.preprocess(unwrap, report).transform((answer, context) => {
  const [now] = answer.current_condition;
  const description = oneLine(now?.weatherDesc[0]?.value);
  if (now === undefined || description === '') {
    context.addIssue({ code: 'custom', message: 'weatherDesc is empty' });
    return z.NEVER;
  }
  const place = answer.nearest_area?.[0];
  const location = [place?.areaName[0]?.value, place?.country?.[0]?.value]
    .map(oneLine)
    .filter((part) => part !== '')
    .join(', ');
  const observedAt = localTime(now.localObsDateTime);
  return {
    temperatureC: now.temp_C,
    ...(now.FeelsLikeC !== undefined && { feelsLikeC: now.FeelsLikeC }),
    description,
    humidityPercent: now.humidity,
    windKph: now.windspeedKmph,
    ...(observedAt && { observedAt }),
    ...(location !== '' && { location }),
  };
});

/** URL of the report on `city`: always one segment below `base`. */
export const reportUrl = (base: string, city: string): string =>
  `${base}/${encodeURIComponent(city)}?format=j1`;

const UNKNOWN = /^\W*(?:\w+:\s*)?(?:404 )?unknown location\b|^\W*location not found\b/i;
const KNOWN_AFTER_ALL = /please try ~?-?\d/i;

/**
 * What wttr.in means by an answer that is no report.
 *
 * Places it cannot find are answered with 404 (and the weather of some other place,
 * chubin/wttr.in#1134), or with "Unknown location" and status 200 or 500. "Unknown location;
 * please try ~35.6,139.7" is something else: it found the place but its own source of weather
 * has run dry (#890, #1059). That passes, but not within a backoff, and says nothing about
 * whether the service is up.
 */
const meaningOf = (error: unknown, city: string): ResilienceError | undefined => {
  const refused = error instanceof UpstreamStatusError;
  if (!refused && !(error instanceof InvalidAnswerError)) return undefined;
  const unknown = UNKNOWN.test(error.body);
  if (unknown && KNOWN_AFTER_ALL.test(error.body)) {
    return new ResilienceError(
      createFailure('RATE_LIMITED', {
        message: `wttr.in has no report on "${city}" now: it found the place, but has used up its own quota of weather data.`,
        suggestion: 'Try another city, or this one again in an hour at the earliest.',
        retryable: false,
        cause: error,
      }),
    );
  }
  if (!unknown && !(refused && error.status === 404)) return undefined;
  return new ResilienceError(
    createFailure('NOT_FOUND', {
      message: `wttr.in knows no place called "${city}".`,
      suggestion:
        'Check the spelling, use the English name, or add the country, as in "Paris, France".',
      cause: error,
    }),
  );
};

/**
 * The weather in `city` now.
 *
 * @throws ResilienceError `NOT_FOUND` for a place that wttr.in does not know
 * @throws what `fetchJson` throws
 */
export const fetchReport = async (
  base: string,
  city: string,
  signal: AbortSignal,
): Promise<Report> => {
  try {
    return await withPrivatePath(() => fetchJson(reportUrl(base, city), { signal, schema }));
  } catch (error) {
    throw meaningOf(error, city) ?? error;
  }
};
