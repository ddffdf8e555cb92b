/**
 * @module
 * Plain text out of a piece of HTML. What comes out is text and never markup: whoever shows it
 * in a page must escape it like any other text.
 */

/** Characters of HTML that are looked at. */
const LONGEST = 20_000;

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '–',
  mdash: '—',
  hellip: '…',
};

const ENTITY = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-z]{2,6}));/g;

const character = (code: number): string =>
  code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : '\ufffd';

/**
 * The text of `html` on one line: tags go, entities are decoded once (`&amp;lt;` is the text
 * `&lt;`), those it does not know stay as they are, control characters become spaces.
 */
export const htmlText = (html: string): string =>
  html
    .slice(0, LONGEST)
    .replace(/<[^<>]*>/g, '')
    // What is left of them is half a tag; decoded ones come later and are text.
    .replace(/[<>]/g, '')
    .replace(ENTITY, (whole, decimal?: string, hex?: string, name?: string) => {
      if (decimal !== undefined) return character(Number(decimal));
      if (hex !== undefined) return character(Number.parseInt(hex, 16));
      return name !== undefined && Object.hasOwn(NAMED, name) ? (NAMED[name] ?? whole) : whole;
    })
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .toWellFormed();
