/**
 * @module
 * Names of places: which ones may be asked for, and when two are the same.
 */
import { z } from 'zod';

/** Longest name of a place, in UTF-16 units. */
const MAX_CITY = 100;

/** Letters of any script with their marks, digits, and the punctuation that names have. */
const ALLOWED = /^[\p{L}\p{M}\p{N} .'’\-,()]*$/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
/** wttr.in answers such names with a picture or a static file. */
const FILE_NAME = /\.(?:png|ico|txt|html?|json|css|js)$/i;
/** wttr.in answers them with the phase of the moon. */
const MOON = /^moon(?:\s*,.*)?$/i;

/** One form for each name: NFC, single spaces, none at the ends. */
const tidy = (name: string): string =>
  name
    .normalize('NFC')
    .replace(/\p{Zs}+/gu, ' ')
    .trim();

/** What is wrong with a name and how to mend it, or undefined. */
const problemOf = (city: string): string | undefined => {
  if (city === '') return 'is empty; give the name of a city, such as "Tokyo" or "Paris, France"';
  if (city.length > MAX_CITY) {
    return `is ${city.length} characters long; give only the name of a city, at most ${MAX_CITY} characters`;
  }
  if (CONTROL.test(city)) {
    return 'contains a line break or control character; give one name on one line';
  }
  if (/^[~@:]/.test(city)) {
    return `must not begin with "${city[0]}", which is a command to the weather service; begin with the name itself`;
  }
  if (/[/\\?#]|\.\./.test(city)) {
    return 'must not contain "/", "\\", "?", "#" or ".."; give a name, not a path or URL';
  }
  if (!ALLOWED.test(city)) {
    return "may contain only letters of any script, digits, spaces and . ' - , ( ); leave out the rest";
  }
  if (!/[\p{L}\p{N}]/u.test(city)) return 'contains no letter; give the name of a city';
  if (FILE_NAME.test(city)) {
    return 'looks like the name of a file; give the name of a city without an ending';
  }
  if (MOON.test(city)) {
    return 'names the moon, not a city; give a place on earth, such as "Moon Township"';
  }
  return undefined;
};

/**
 * The name of a city: 1 to 100 characters after trimming. Checked in code and not by a
 * pattern in the JSON Schema, since not every client's regular expressions know `\p{L}`.
 */
export const citySchema = z
  .string()
  .overwrite(tidy)
  .superRefine((city, context) => {
    const problem = problemOf(city);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

/** The same for all spellings of one name: what an answer is kept under. */
export const placeKey = (city: string): string => tidy(city).toLowerCase();
