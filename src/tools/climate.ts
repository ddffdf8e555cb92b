/**
 * @module
 * What the weather is usually like in some large cities: the answer when the real one cannot be
 * had. Rounded long-term means of the daily low and high of each month, compiled from general
 * knowledge; good for what to expect and what to pack, and no more.
 */
import { placeKey } from './place.ts';

/** What a month is usually like. */
export interface TypicalMonth {
  /** Name of the city in English. */
  readonly city: string;
  /** English name of the month. */
  readonly month: string;
  /** Mean daily low, in degrees Celsius. */
  readonly low: number;
  /** Mean daily high, in degrees Celsius. */
  readonly high: number;
  /** The climate in a few words. */
  readonly climate: string;
}

/** Lows and highs from January to December, in degrees Celsius. */
type Row = readonly [
  names: string,
  countries: string,
  lows: string,
  highs: string,
  climate: string,
];

// biome-ignore format: a table is read by its rows
const TABLE: readonly Row[] = [
  ['Tokyo|東京|东京', 'Japan|日本', '1 2 5 10 15 19 23 24 21 15 9 4', '10 11 14 19 24 26 30 31 28 22 17 12', 'hot, humid summers with rain in June; mild, dry winters'],
  ['Beijing|Peking|北京', 'China|中国', '-8 -5 1 8 14 19 22 21 15 8 0 -6', '2 6 12 21 27 30 31 30 26 19 10 4', 'continental: hot, wet summers; cold, dry winters; short spring and autumn'],
  ['Shanghai|上海', 'China|中国', '2 3 7 12 17 22 26 26 22 16 10 4', '8 10 14 20 25 28 33 32 28 23 17 11', 'hot, humid summers; cool, damp winters'],
  ['Guangzhou|广州', 'China|中国', '11 12 15 19 23 25 26 26 24 21 16 12', '18 19 22 26 30 32 33 33 32 29 25 20', 'humid subtropical: long, hot, wet summers; mild winters'],
  ['Hong Kong|香港', 'China|中国|Hong Kong SAR', '15 15 17 21 24 27 27 27 26 24 20 16', '19 19 22 25 29 30 32 31 30 28 24 20', 'hot, wet summers with typhoons; mild, dry winters'],
  ['Taipei|台北|臺北', 'Taiwan|台湾|臺灣', '14 15 16 20 23 25 27 27 25 23 20 16', '19 20 22 26 29 32 35 34 31 28 24 21', 'hot, humid summers with typhoons; mild, drizzly winters'],
  ['Seoul|서울|首尔', 'South Korea|Korea|韩国', '-6 -3 2 8 13 18 22 23 17 10 3 -3', '2 5 11 18 23 27 29 30 26 20 12 4', 'hot, wet summers; cold, dry winters'],
  ['Singapore|新加坡', 'Singapore', '24 24 25 25 26 26 25 25 25 25 24 24', '31 32 32 32 32 32 32 31 32 32 31 31', 'hot, humid and showery all year'],
  ['Bangkok|曼谷', 'Thailand', '23 24 26 27 27 26 26 26 25 25 24 22', '33 34 35 36 35 34 33 33 33 33 33 32', 'hot all year; rain from May to October'],
  ['Jakarta', 'Indonesia', '24 24 24 25 25 25 24 24 24 25 25 24', '30 30 31 32 33 32 32 33 33 33 32 31', 'hot and humid all year; wettest from December to March'],
  ['Mumbai|Bombay', 'India', '17 18 21 24 27 26 25 25 24 23 21 18', '31 31 33 33 34 32 30 30 31 34 34 32', 'hot; monsoon from June to September'],
  ['Delhi|New Delhi', 'India', '7 10 15 21 26 28 27 26 25 19 13 8', '20 24 30 36 40 39 35 34 34 33 28 23', 'very hot before the monsoon of July to September; cool, hazy winters'],
  ['Dubai|迪拜', 'United Arab Emirates|UAE', '14 16 18 21 25 28 31 31 28 24 20 16', '24 25 28 33 38 40 41 41 39 35 30 26', 'desert: very hot summers, warm winters, hardly any rain'],
  ['Istanbul', 'Turkey|Türkiye', '4 4 5 8 13 18 20 21 18 14 9 6', '9 9 11 16 21 26 28 29 25 20 15 11', 'warm, humid summers; cool, wet winters'],
  ['Moscow|Москва', 'Russia|Россия', '-9 -9 -4 3 8 12 15 13 8 3 -2 -6', '-4 -3 3 11 19 22 25 23 16 9 1 -3', 'warm summers; long winters with snow'],
  ['London|伦敦', 'United Kingdom|UK|England|Great Britain', '3 3 4 6 9 12 14 14 12 9 5 3', '8 9 12 15 18 21 24 23 20 16 11 9', 'mild and changeable, often cloudy, rain in every month'],
  ['Dublin', 'Ireland', '3 3 4 5 7 10 12 12 10 8 5 4', '8 8 10 12 15 18 19 19 17 14 11 9', 'mild, damp and windy; no great extremes'],
  ['Paris|巴黎', 'France', '3 3 5 7 11 14 16 16 13 10 6 4', '8 8 12 16 20 23 26 26 21 16 11 8', 'warm summers; cool, damp winters'],
  ['Amsterdam', 'Netherlands|The Netherlands', '1 1 3 5 8 11 13 13 11 8 4 2', '6 6 10 14 18 20 22 22 19 14 10 7', 'mild, windy and damp'],
  ['Berlin|柏林', 'Germany|Deutschland', '-2 -1 1 5 9 13 15 14 11 7 3 0', '3 5 9 15 19 22 25 24 20 14 8 4', 'warm summers; cold, grey winters'],
  ['Zurich|Zürich', 'Switzerland', '-1 -1 2 5 9 12 14 14 11 7 2 0', '4 5 10 15 19 22 25 24 19 14 8 4', 'warm, showery summers; cold winters with some snow'],
  ['Vienna|Wien', 'Austria', '-2 0 3 7 11 15 17 16 12 7 3 -1', '3 6 11 17 21 25 27 27 21 15 8 4', 'warm summers; cold winters'],
  ['Stockholm', 'Sweden', '-3 -3 -1 3 7 11 14 14 10 6 2 -1', '1 1 5 11 16 20 23 21 16 10 5 2', 'mild summers with long days; cold, dark winters'],
  ['Reykjavik|Reykjavík', 'Iceland', '-2 -2 -2 1 4 7 9 9 6 3 0 -2', '3 3 3 6 9 12 14 14 11 7 4 3', 'cool and windy all year'],
  ['Madrid', 'Spain|España', '1 2 5 7 11 16 19 19 15 10 5 2', '10 12 16 18 22 28 32 32 26 19 13 10', 'hot, dry summers; cool winters'],
  ['Lisbon|Lisboa', 'Portugal', '8 9 11 12 14 17 18 19 18 15 12 9', '15 16 19 20 23 26 28 29 27 23 18 15', 'warm, dry summers; mild, wet winters'],
  ['Rome|Roma|罗马', 'Italy|Italia', '3 3 5 8 12 16 18 19 16 12 8 4', '12 13 16 19 23 27 31 31 27 22 17 13', 'hot, dry summers; mild, wet winters'],
  ['Athens', 'Greece', '7 7 9 12 16 21 24 24 20 16 12 9', '13 14 16 20 25 30 33 33 29 23 19 15', 'hot, dry summers; mild, wet winters'],
  ['Cairo', 'Egypt', '9 10 12 15 18 21 23 23 21 19 14 11', '19 20 24 28 32 34 35 34 33 29 24 20', 'desert: hot summers, mild winters, hardly any rain'],
  ['Lagos', 'Nigeria', '23 25 25 25 24 23 23 23 23 23 24 23', '33 33 33 32 31 30 28 28 29 30 32 33', 'hot and humid; wettest from May to July'],
  ['Nairobi', 'Kenya', '13 13 14 15 14 12 12 12 12 14 14 14', '26 27 27 25 24 23 23 24 26 26 24 25', 'mild all year; rain from March to May and in November'],
  ['Johannesburg', 'South Africa', '15 14 13 10 7 4 4 6 9 12 13 14', '26 25 24 21 19 16 17 20 23 25 25 25', 'warm summers with thunderstorms; dry, sunny winters with cold nights'],
  ['Cape Town', 'South Africa', '17 17 15 13 11 9 8 8 10 12 14 16', '27 27 26 23 20 18 18 18 20 22 24 26', 'warm, dry, windy summers; mild, wet winters'],
  ['Sydney|悉尼', 'Australia', '20 20 18 15 12 10 9 10 12 15 17 18', '27 27 25 23 20 18 17 19 21 23 24 26', 'warm summers; mild winters; rain in every month'],
  ['Melbourne', 'Australia', '15 16 14 11 9 7 7 7 9 10 12 13', '27 27 24 20 17 14 14 15 18 20 23 25', 'changeable: warm summers, cool winters'],
  ['Auckland', 'New Zealand', '16 17 16 13 11 9 8 8 10 11 12 14', '23 24 22 20 17 15 15 15 16 18 19 21', 'mild and humid; wettest in winter'],
  ['New York|New York City|NYC|纽约', 'United States|USA|US|NY|New York', '-2 -1 3 8 13 19 22 21 17 11 6 1', '4 6 10 17 22 27 30 29 25 18 12 7', 'hot, humid summers; cold winters with snow'],
  ['Chicago', 'United States|USA|US|IL|Illinois', '-7 -6 0 5 11 17 20 19 15 8 2 -4', '0 2 8 14 20 26 29 28 24 17 9 3', 'hot summers; cold, windy winters with snow'],
  ['Los Angeles|LA|洛杉矶', 'United States|USA|US|CA|California', '9 10 11 12 14 16 18 18 18 15 12 9', '20 20 21 22 23 25 28 29 28 26 23 20', 'warm, dry summers; mild winters with a little rain'],
  ['San Francisco|旧金山', 'United States|USA|US|CA|California', '8 9 9 10 11 12 12 13 13 12 10 8', '14 15 16 17 18 19 19 20 21 20 17 14', 'cool and foggy in summer; mild, wet winters'],
  ['Toronto', 'Canada|Ontario|ON', '-7 -6 -2 4 10 15 18 18 14 8 2 -3', '-1 0 5 11 18 24 27 26 21 14 8 2', 'warm, humid summers; cold winters with snow'],
  ['Vancouver', 'Canada|British Columbia|BC', '1 1 3 5 9 11 13 14 11 7 4 2', '7 8 10 13 17 20 22 22 19 14 9 7', 'warm, dry summers; mild, very wet winters'],
  ['Mexico City|Ciudad de México', 'Mexico|México', '7 8 10 12 13 13 12 12 12 11 9 7', '22 23 26 27 27 25 24 24 23 23 22 22', 'mild highland climate; afternoon rain from June to September'],
  ['São Paulo', 'Brazil|Brasil', '19 19 18 16 13 12 12 13 14 16 17 18', '28 28 27 26 23 22 22 24 25 26 27 28', 'warm, wet summers; mild, dry winters'],
  ['Rio de Janeiro', 'Brazil|Brasil', '23 24 23 22 20 19 18 19 19 20 21 22', '30 30 30 28 26 25 25 26 26 27 28 29', 'hot, wet summers; warm, drier winters'],
  ['Buenos Aires', 'Argentina', '20 19 18 14 11 9 8 9 11 13 16 18', '30 29 27 23 19 16 15 18 19 23 26 29', 'hot, humid summers; cool winters'],
];

const MONTHS =
  'January February March April May June July August September October November December'.split(
    ' ',
  );

/** Without marks: "Sao Paulo" is São Paulo. */
const plain = (name: string): string => placeKey(name).normalize('NFD').replace(/\p{M}/gu, '');

interface Climate {
  readonly row: Row;
  readonly countries: ReadonlySet<string>;
}

const byName = new Map<string, Climate>();
for (const row of TABLE) {
  const countries = new Set(row[1].split('|').map(plain));
  for (const name of row[0].split('|')) byName.set(plain(name), { row, countries });
}

/** English names of the cities in the table. */
export const climateCities: readonly string[] = TABLE.map(([names]) => names.split('|')[0] ?? '');

/**
 * What the month of `time` is usually like in `city`, or undefined for a place that is not in
 * the table. A country or state after a comma must be the right one: Paris, Texas is not Paris.
 *
 * @param time milliseconds since the Unix epoch; the month is that of UTC
 */
export const typicalWeather = (city: string, time: number): TypicalMonth | undefined => {
  const [name = '', ...where] = city.split(',').map(plain);
  const climate = byName.get(name);
  if (climate === undefined || !where.every((part) => climate.countries.has(part))) {
    return undefined;
  }
  const index = new Date(time).getUTCMonth();
  const [names, , lows, highs, words] = climate.row;
  const at = (values: string): number => Number(values.split(' ')[index]);
  const month = MONTHS[index] ?? '';
  return {
    city: names.split('|')[0] ?? '',
    month,
    low: at(lows),
    high: at(highs),
    climate: words,
  };
};
