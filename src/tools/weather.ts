/**
 * @module
 * The tool `get_weather`: the weather in a city now, out of wttr.in; what is usual there when
 * that cannot be had.
 */
import { z } from 'zod';
import { protectTool } from '../mcp/protect.ts';
import { defineTool, type Tool, type ToolResult } from '../mcp/tool.ts';
import type { Failure } from '../resilience/failure.ts';
import type { Pipeline } from '../resilience/pipeline.ts';
import type { PolicySettings } from '../resilience/policy.ts';
import { presets } from '../resilience/presets.ts';
import { typicalWeather } from './climate.ts';
import { markDegraded } from './degraded.ts';
import { citySchema, placeKey } from './place.ts';
import { fetchReport, type Report } from './wttr.ts';

/** Where the weather comes from unless `WEATHER_API_URL` says otherwise. */
export const DEFAULT_WEATHER_URL = 'https://wttr.in';

/**
 * Policies of wttr.in, a free public service: those of the founding matrix, an answer kept for
 * 5 minutes, and up to an hour longer while the service cannot be reached.
 */
export const weatherPolicy: PolicySettings = {
  ...presets['public-api'],
  timeout: 10_000,
  cache: { ttl: 5 * 60_000, staleIfError: 60 * 60_000 },
};

const inputSchema = z.object({
  city: citySchema.describe(
    'Name of a city in any language, best in English, with the country where there are several: "Tokyo", "Paris, France". 1 to 100 characters; letters, digits, spaces and . \' - , ( ) only.',
  ),
  use_cache: z
    .boolean()
    .default(true)
    .describe('False asks for a new report; true allows one of up to 5 minutes ago.'),
});

const outputSchema = z.object({
  city: z.string().describe('The city that was asked for.'),
  location: z.string().optional().describe('The place that the source took it for.'),
  temperature_c: z
    .number()
    .describe(
      'Degrees Celsius, measured. With source "climate-table" the middle of the typical range: an estimate.',
    ),
  feels_like_c: z.number().optional().describe('Degrees Celsius, as it feels.'),
  typical_low_c: z.number().optional().describe('Mean daily low of this month.'),
  typical_high_c: z.number().optional().describe('Mean daily high of this month.'),
  description: z.string(),
  humidity_percent: z.number().optional().describe('Absent unless measured.'),
  wind_kph: z.number().optional().describe('Kilometres per hour. Absent unless measured.'),
  observed_at: z
    .string()
    .optional()
    .describe('When it was measured, in the local time of the place: YYYY-MM-DDTHH:mm.'),
  source: z.enum(['wttr.in', 'climate-table']),
  degraded: z.boolean().optional().describe('True for an old answer or a substitute.'),
  reason: z.string().optional().describe('Why the answer is degraded.'),
});

type WeatherOutput = z.output<typeof outputSchema>;

/** What the tool needs. */
export interface WeatherOptions {
  /** Base URL of wttr.in, without a slash at its end. */
  readonly url: string;
  readonly pipeline: Pipeline;
  /** The calendar, for the month of the climate table. Default `Date.now`. */
  readonly wallTime?: () => number;
}

const answer = (structuredContent: WeatherOutput, text: string): ToolResult => ({
  content: [{ type: 'text', text }],
  structuredContent,
});

const measured = (city: string, report: Report): ToolResult => {
  const { temperatureC, feelsLikeC, description, humidityPercent, windKph } = report;
  const { observedAt, location } = report;
  const where = location ? `${city} (${location})` : city;
  const feels = feelsLikeC === undefined ? '' : `, feels like ${feelsLikeC} °C`;
  const when = observedAt ? ` Observed at ${observedAt.replace('T', ' ')} local time.` : '';
  return answer(
    {
      city,
      ...(location && { location }),
      temperature_c: temperatureC,
      ...(feelsLikeC !== undefined && { feels_like_c: feelsLikeC }),
      description,
      humidity_percent: humidityPercent,
      wind_kph: windKph,
      ...(observedAt && { observed_at: observedAt }),
      source: 'wttr.in',
    },
    `Weather in ${where}: ${description}, ${temperatureC} °C${feels}, humidity ${humidityPercent} %, wind ${windKph} km/h.${when}`,
  );
};

/** What is usual in the city, said to be no more than that; undefined for cities not listed. */
const typical = (city: string, time: number, failure: Failure): ToolResult | undefined => {
  const usual = typicalWeather(city, time);
  if (usual === undefined) return undefined;
  const { low, high, month, climate } = usual;
  const description = `Typical for ${month} in ${usual.city}: ${low} to ${high} °C; ${climate}. A long-term average, not today's weather.`;
  return answer(
    {
      city,
      temperature_c: (low + high) / 2,
      typical_low_c: low,
      typical_high_c: high,
      description,
      source: 'climate-table',
      degraded: true,
      reason: `${failure.code}: ${failure.message}`,
    },
    `No current weather for ${city}. ${description}`,
  );
};

/** Makes `get_weather`. */
export const createWeatherTool = ({
  url,
  pipeline,
  wallTime = Date.now,
}: WeatherOptions): Tool<typeof inputSchema, typeof outputSchema> => {
  const tool = defineTool({
    name: 'get_weather',
    title: 'Current weather',
    description:
      'Current weather in a city: temperature, sky, humidity, wind. When the weather service cannot be reached, an earlier answer or the typical range of the month is given instead, marked "degraded".',
    inputSchema,
    outputSchema,
    annotations: {
      title: 'Current weather',
      readOnlyHint: true,
      idempotentHint: true,
      openWorldHint: true,
    },
    handler: async ({ city }, { signal }) => measured(city, await fetchReport(url, city, signal)),
  });
  return markDegraded(
    protectTool(tool, {
      pipeline,
      cacheInput: ({ city }) => placeKey(city),
      useCache: ({ use_cache }) => use_cache,
      fallback: ({ city }, failure) => typical(city, wallTime(), failure),
    }),
  );
};
