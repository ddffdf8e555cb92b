/**
 * @module
 * What an upstream's process says on stderr: passed on line by line under the upstream's name,
 * without secrets, and no more of it than a person could read.
 */

import { type Frame, LineFramer } from '../mcp/transports/line-framer.ts';
import { type Clock, systemClock, type Timer } from '../resilience/clock.ts';
import { clean } from '../resilience/inspect.ts';
import { TokenBucket } from '../resilience/token-bucket.ts';
import { masked } from './config-secrets.ts';

/** Settings of `ChildStderr`. */
export interface ChildStderrSettings {
  /** Name of the upstream. */
  readonly name: string;
  /** Values that must never be shown, longest first. */
  readonly secrets: readonly string[];
  /** Takes lines for people. */
  readonly log: (line: string) => void;
  readonly clock?: Clock;
}

/** Lines passed on at once, and per second. What is beyond is counted. */
const RATE = { burst: 100, limit: 20, interval: 1_000 };
/** Longest line that is read, in bytes; of a longer one the beginning is shown. */
const MAX_LINE = 16 * 1024;
/** Characters of a line that are shown. */
const MAX_SHOWN = 1_000;
/** Milliseconds after which lines that were left out are reported. */
const REPORT = 1_000;
/** Lines, and characters of each, that are kept for the case that the child ends. */
const LAST_LINES = 5;
const LAST_LENGTH = 300;

/** `text` without the beginning of a secret at its end, where it was cut. */
const withoutCutSecret = (text: string, secrets: readonly string[]): string => {
  for (const secret of secrets) {
    for (let length = Math.min(secret.length - 1, text.length); length > 0; length -= 1) {
      if (text.endsWith(secret.slice(0, length))) return `${text.slice(0, -length)}***`;
    }
  }
  return text;
};

export class ChildStderr {
  readonly #settings: ChildStderrSettings;
  readonly #clock: Clock;
  readonly #framer = new LineFramer(MAX_LINE);
  readonly #bucket: TokenBucket;
  #last: string[] = [];
  #leftOut = 0;
  #report: Timer | undefined;

  constructor(settings: ChildStderrSettings) {
    this.#settings = settings;
    this.#clock = settings.clock ?? systemClock;
    this.#bucket = new TokenBucket(this.#clock.now());
  }

  push(chunk: Uint8Array): void {
    for (const frame of this.#framer.push(chunk)) this.#line(frame);
  }

  /** Passes on what is left, once the child says nothing more. */
  end(): void {
    for (const frame of this.#framer.end()) this.#line(frame);
    this.#reportLeftOut();
  }

  /** The last lines, for what they say of why it ended; undefined when there are none. */
  get lastWords(): string | undefined {
    const lines = this.#last.map((line) => this.#show(line, LAST_LENGTH)).filter(Boolean);
    return lines.length === 0 ? undefined : lines.join('\n');
  }

  #line(frame: Frame): void {
    const text = this.#textOf(frame);
    this.#last.push(text);
    if (this.#last.length > LAST_LINES) this.#last.shift();
    const now = this.#clock.now();
    if (this.#bucket.available(RATE, now) === 0) {
      this.#leftOut += 1;
      this.#report ??= this.#clock.setTimer(REPORT, () => this.#reportLeftOut());
      return;
    }
    this.#bucket.take();
    this.#reportLeftOut();
    this.#settings.log(`${this.#settings.name}: ${this.#show(text, MAX_SHOWN)}`);
  }

  #textOf(frame: Frame): string {
    switch (frame.kind) {
      case 'line':
        return frame.text;
      case 'too-long':
        return `${withoutCutSecret(frame.head, this.#settings.secrets)} … (a line of more than ${MAX_LINE} bytes)`;
      default:
        return '(a line that is not UTF-8)';
    }
  }

  #show(text: string, length: number): string {
    return clean(masked(text, this.#settings.secrets), length);
  }

  #reportLeftOut(): void {
    this.#report?.cancel();
    this.#report = undefined;
    if (this.#leftOut === 0) return;
    this.#settings.log(`${this.#settings.name}: ${this.#leftOut} more lines on stderr, left out`);
    this.#leftOut = 0;
  }
}
