/**
 * @module
 * Whose resource a URI is: that of the upstream which lists it, else of the one whose template
 * it fits best, else of nobody that we know.
 */
import { isJson } from './catalog-kinds.ts';
import type { Listing } from './catalog-list.ts';

/** What one upstream lists of its resources, as far as it is known. */
export interface UriSource<Source> {
  readonly source: Source;
  readonly resources: Listing | undefined;
  readonly templates: Listing | undefined;
}

/** The texts of a URI template (RFC 6570) that stand between its expressions. */
const literalsOf = (template: string): string[] => template.split(/\{[^{}]*\}/);

/**
 * How well a URI fits a template: characters of it that are literal, or undefined if it does
 * not fit at all. An expression may stand for any text, since servers match as they please;
 * searching for the literals one after the other takes no longer than reading the URI.
 */
export const closeness = (template: string, uri: string): number | undefined => {
  const literals = literalsOf(template);
  const [first = '', ...others] = literals;
  const last = others.pop();
  if (last === undefined) return template === uri ? template.length : undefined;
  if (!uri.startsWith(first)) return undefined;
  let position = first.length;
  for (const literal of others) {
    const found = uri.indexOf(literal, position);
    if (found < 0) return undefined;
    position = found + literal.length;
  }
  if (uri.length - last.length < position || !uri.endsWith(last)) return undefined;
  return literals.reduce((sum, { length }) => sum + length, 0);
};

const indexes = new WeakMap<Listing, ReadonlySet<unknown>>();

/** The URIs of a list; made once for each. */
const urisOf = (listing: Listing): ReadonlySet<unknown> => {
  let index = indexes.get(listing);
  if (!index) {
    index = new Set(listing.items.map(({ uri }) => uri));
    indexes.set(listing, index);
  }
  return index;
};

const bestFit = (templates: Listing | undefined, uri: string): number | undefined => {
  let best: number | undefined;
  for (const item of templates?.items ?? []) {
    if (!isJson(item) || typeof item.uriTemplate !== 'string') continue;
    const found = closeness(item.uriTemplate, uri);
    if (found !== undefined && (best === undefined || found > best)) best = found;
  }
  return best;
};

/**
 * Whom to ask for a URI, in this order. Of several upstreams that list it the first one of the
 * configuration has it; one that lists it is the only one to ask. A URI that nobody lists may
 * come out of a tool's answer, so that everybody is asked, those whose templates fit it first.
 */
export const whoHas = <Source>(uri: string, sources: readonly UriSource<Source>[]): Source[] => {
  const owner = sources.find(({ resources }) => resources && urisOf(resources).has(uri));
  if (owner) return [owner.source];
  return sources
    .map(({ source, templates }, order) => ({ source, order, fit: bestFit(templates, uri) ?? -1 }))
    .sort((one, other) => other.fit - one.fit || one.order - other.order)
    .map(({ source }) => source);
};
