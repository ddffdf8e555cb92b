import type { Requirement } from '../requirements.ts';

const tools = 'design 1, the reference server';
const founding = 'seeds/000, parts 9 to 11';

/** The tools of the reference server. */
export const requirements = {
  K03: {
    promise: 'errors are never cached, and only what is read-only is',
    source: 'public case K03; design 3, Cache',
  },
  'upstream.statuses': {
    promise: 'a status that is no success keeps its meaning and its Retry-After',
    source: 'design 3, Failure',
  },
  'upstream.invalid-answers': {
    promise:
      'another content type, truncated, malformed, oversized or ill-shaped JSON is UPSTREAM_INVALID_RESPONSE',
    source: 'design 7, malformed and truncated bodies',
  },
  'upstream.no-socket-leak': {
    promise: 'a failed request leaves its connection reusable or closed, never stuck',
    source: 'nodejs/undici, Garbage Collection: bodies must be consumed or cancelled',
  },
  'upstream.same-origin': {
    promise: 'a redirect is followed within one origin only',
    source: tools,
  },
  'upstream.aborts': {
    promise: 'an abort ends the request, and the reading of its answer, at the upstream too',
    source: 'design 5, a client that cancels aborts the work behind it',
  },
  'tools.base-url': {
    promise: 'a base URL that is none is refused at the start, with the name of its variable',
    source: tools,
  },
  'tools.listed': {
    promise: 'all tools can be listed, with titles, annotations and output schemas',
    source: 'design 5, The MCP rules',
  },
  'tools.isolated': {
    promise: 'trouble of one dependency leaves the tools of another unaffected',
    source: 'design 1, one slow dependency drags the whole server down',
  },
  'tools.policies': {
    promise:
      'settings are laid over those of each tool, an unknown tool is refused with the known ones',
    source: 'design 2, policy.ts',
  },
  'weather.input-validated': {
    promise: 'what is no name of a city is refused with the field and the fix, and no request',
    source: founding,
  },
  'weather.one-segment': {
    promise: 'every accepted city gives a URL of the same origin with exactly one segment more',
    source: tools,
  },
  'weather.report': {
    promise: 'a report becomes numbers, strictly read, and a text',
    source: founding,
  },
  'weather.cached': {
    promise: 'a report is served again for 5 minutes, to every spelling of the city',
    source: founding,
  },
  'weather.stale-if-error': {
    promise: 'when the service fails, a report of the last hour is served, marked in every part',
    source: 'design 3, Cache',
  },
  'weather.fallback-degraded': {
    promise:
      'when the service fails, a listed city gets what is typical of the month, marked degraded with reason and source; another city gets the failure',
    source: founding,
  },
  'weather.unknown-place': {
    promise: 'a place that the service does not know is NOT_FOUND and no failure of the service',
    source: 'chubin/wttr.in#1027, #1134',
  },
  'weather.quota': {
    promise:
      '"Unknown location; please try" coordinates is a service out of quota, not an unknown place',
    source: 'chubin/wttr.in#890, #1059',
  },
  'search.results': {
    promise: 'results are plain text with links, none is a success, errors of the wiki are errors',
    source: 'mediawiki.org, API:Search',
  },
  'search.input-validated': {
    promise: 'what cannot be searched for is refused with the field and the fix, and no request',
    source: tools,
  },
  'health.reads-histogram': {
    promise: 'durations come out of the tool.duration histogram, overall and by tool',
    source: founding,
  },
  'health.reads-only': {
    promise: 'a health check asks nobody and changes no figure',
    source: founding,
  },
  'health.degraded': {
    promise: 'a breaker that is not closed makes the status degraded, with name and wait',
    source: founding,
  },
  'health.no-metrics': {
    promise: 'where no metrics are collected it says so instead of reporting zeros',
    source: tools,
  },
} as const satisfies Record<string, Requirement>;
