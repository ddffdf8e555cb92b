/**
 * @module
 * The search of a MediaWiki (`action=query&list=search`). MediaWiki tells errors with status
 * 200 and an `error` in the JSON.
 */
import { z } from 'zod';
import { createFailure, type FailureCode, ResilienceError } from '../resilience/failure.ts';
import { htmlText } from './html-text.ts';
import { fetchJson } from './upstream.ts';

/** One page that was found. */
interface FoundPage {
  readonly title: string;
  /** Plain text around what was found. */
  readonly snippet: string;
  readonly link: string;
}

/** What was found. */
export interface FoundPages {
  readonly results: readonly FoundPage[];
  /** Pages that match in all, when the wiki says so. */
  readonly total?: number;
}

const found = z.object({
  query: z.object({
    search: z.array(z.object({ title: z.string().min(1), snippet: z.string().default('') })),
    searchinfo: z
      .object({ totalhits: z.number().int().min(0).optional() })
      .optional()
      .catch(undefined),
  }),
});

const failed = z.object({ error: z.object({ code: z.string(), info: z.string().default('') }) });

const schema = z.union([failed, found], { error: 'neither search results nor an error' });

/** URL of the search for `query` below `base`. */
const searchUrl = (base: string, query: string, limit: number): string => {
  const parameters = new URLSearchParams({
    action: 'query',
    list: 'search',
    srsearch: query,
    format: 'json',
    srlimit: String(limit),
    utf8: '1',
  });
  return `${base}/w/api.php?${parameters}`;
};

/** Codes of the API that are not about the request; every other one is for the caller to mend. */
const CODES: readonly (readonly [RegExp, FailureCode])[] = [
  // Throttled, the search pool is full, or the databases lag (API:Etiquette, Manual:Maxlag).
  [/^(?:ratelimited|maxlag|cirrussearch(?:-regex)?-too-busy-error)$/, 'RATE_LIMITED'],
  [/^(?:readonly|cirrussearch-backend-error)$/, 'UPSTREAM_UNAVAILABLE'],
  [/^internal_api_error/, 'UPSTREAM_ERROR'],
];

const refusal = (host: string, code: string, info: string): ResilienceError => {
  const known = CODES.find(([pattern]) => pattern.test(code))?.[1] ?? 'REQUEST_REJECTED';
  const message = `${host} refused the search: ${htmlText(info || code).slice(0, 300)}`;
  return new ResilienceError(createFailure(known, { message }));
};

/** Pages live beside the API on wikis that are laid out as Wikimedia's are. */
const linkTo = (base: string, title: string): string =>
  `${base}/wiki/${encodeURIComponent(title.toWellFormed().replaceAll(' ', '_'))}`;

/**
 * Pages about `query`, the best match first.
 *
 * @throws ResilienceError for an error that the wiki tells in its answer
 * @throws what `fetchJson` throws
 */
export const searchWiki = async (
  base: string,
  query: string,
  limit: number,
  signal: AbortSignal,
): Promise<FoundPages> => {
  const url = searchUrl(base, query, limit);
  const answer = await fetchJson(url, { signal, schema });
  if ('error' in answer) throw refusal(new URL(url).host, answer.error.code, answer.error.info);
  const { search, searchinfo } = answer.query;
  return {
    results: search.slice(0, limit).map(({ title, snippet }) => ({
      title: htmlText(title),
      snippet: htmlText(snippet),
      link: linkTo(base, title),
    })),
    ...(searchinfo?.totalhits !== undefined && { total: searchinfo.totalhits }),
  };
};
