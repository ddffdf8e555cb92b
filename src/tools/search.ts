/**
 * @module
 * The tool `search`: full-text search of Wikipedia, or of another MediaWiki.
 */
import { z } from 'zod';
import { protectTool } from '../mcp/protect.ts';
import { defineTool, type Tool, type ToolResult } from '../mcp/tool.ts';
import type { Pipeline } from '../resilience/pipeline.ts';
import type { PolicySettings } from '../resilience/policy.ts';
import { presets } from '../resilience/presets.ts';
import { markDegraded } from './degraded.ts';
import { type FoundPages, searchWiki } from './mediawiki.ts';

/** Where the search goes unless `SEARCH_API_URL` says otherwise. */
export const DEFAULT_SEARCH_URL = 'https://en.wikipedia.org';

const DEFAULT_LIMIT = 5;
const MAX_LIMIT = 20;
/** CirrusSearch refuses longer ones (`$wgCirrusSearchMaxFullTextQueryLength`). */
const MAX_QUERY = 300;

/**
 * Policies of the search, apart from those of the weather: a breaker, a limit and a budget of
 * its own, so that neither notices the other's trouble.
 *
 * 30 searches a minute, three times the preset: a model that looks into one question sends
 * several in a row, and Wikimedia sets no limit on reads but asks for requests in series
 * (mediawiki.org, API:Etiquette), which one every two seconds keeps to. For the same reason no
 * more than 4 run at one time; others wait up to 5 seconds for their turn.
 */
export const searchPolicy: PolicySettings = {
  ...presets['public-api'],
  rateLimit: { limit: 30, interval: 60_000 },
  bulkhead: { limit: 4, queue: 16, maxWait: 5_000 },
  cache: { ttl: 10 * 60_000, staleIfError: 60 * 60_000 },
};

const inputSchema = z.object({
  query: z
    .string()
    .overwrite((query) => query.normalize('NFC').trim())
    .superRefine((query, context) => {
      const refuse = (message: string) => context.addIssue({ code: 'custom', message });
      if (query === '') refuse('is empty; say what to search for');
      else if (query.length > MAX_QUERY) {
        refuse(
          `is ${query.length} characters long; use the few words that matter, at most ${MAX_QUERY} characters`,
        );
      } else if (/[\p{Cc}\u2028\u2029]/u.test(query)) {
        refuse('contains a line break or control character; put the words on one line');
      } else if (!query.isWellFormed()) refuse('contains half a character; correct the text');
    })
    .describe(`What to search for, 1 to ${MAX_QUERY} characters on one line.`),
  limit: z
    .number()
    .int()
    .min(1)
    .max(MAX_LIMIT)
    .default(DEFAULT_LIMIT)
    .describe('Most results wanted.'),
  use_cache: z
    .boolean()
    .default(true)
    .describe('False asks for a new search; true allows results of up to 10 minutes ago.'),
});

const outputSchema = z.object({
  query: z.string(),
  results: z.array(
    z.object({
      title: z.string(),
      snippet: z.string().describe('Plain text around what was found.'),
      link: z.string().describe('Address of the page.'),
    }),
  ),
  total: z.number().int().optional().describe('Pages that match in all.'),
  degraded: z.boolean().optional().describe('True for old results.'),
  reason: z.string().optional().describe('Why the results are old ones.'),
});

/** What the tool needs. */
export interface SearchOptions {
  /** Base URL of the wiki, without a slash at its end: the API is at `/w/api.php` below it. */
  readonly url: string;
  readonly pipeline: Pipeline;
}

const answer = (query: string, { results, total }: FoundPages): ToolResult => {
  const of = total === undefined ? '' : ` of ${total}`;
  const text =
    results.length === 0
      ? `Nothing was found for "${query}". Try fewer or other words.`
      : [
          `Results for "${query}": ${results.length}${of}.`,
          ...results.map(
            ({ title, snippet, link }, index) =>
              `${index + 1}. ${title}\n${link}${snippet === '' ? '' : `\n${snippet}`}`,
          ),
        ].join('\n\n');
  return {
    content: [{ type: 'text', text }],
    structuredContent: { query, results, ...(total !== undefined && { total }) },
  };
};

/** Makes `search`. */
export const createSearchTool = ({
  url,
  pipeline,
}: SearchOptions): Tool<typeof inputSchema, typeof outputSchema> => {
  const tool = defineTool({
    name: 'search',
    title: 'Search Wikipedia',
    description:
      'Full-text search of Wikipedia: titles, excerpts and links of the pages that match best. No match is an empty list, not an error.',
    inputSchema,
    outputSchema,
    annotations: {
      title: 'Search Wikipedia',
      readOnlyHint: true,
      idempotentHint: true,
      openWorldHint: true,
    },
    handler: async ({ query, limit }, { signal }) =>
      answer(query, await searchWiki(url, query, limit, signal)),
  });
  return markDegraded(
    protectTool(tool, {
      pipeline,
      // Not in lower case: "IT" and "it" are different searches.
      cacheInput: ({ query, limit }) => ({ query: query.replace(/\s+/g, ' '), limit }),
      useCache: ({ use_cache }) => use_cache,
    }),
  );
};
