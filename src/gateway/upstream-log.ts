/**
 * @module
 * What people are told about an upstream, line by line: at most so much that a flapping server
 * does not bury everything else (LibreChat PR#12162: 280 313 lines in a minute).
 */
import type { Clock } from '../resilience/clock.ts';
import { type Rate, TokenBucket } from '../resilience/token-bucket.ts';

/** Ten lines at once, and then one in five seconds. */
const RATE: Rate = { limit: 1, interval: 5_000, burst: 10 };

/** Bounds the lines that `log` gets; says with the next one how many were left out. */
export const boundedLog = (clock: Clock, log: (line: string) => void): ((line: string) => void) => {
  const bucket = new TokenBucket(clock.now());
  let omitted = 0;
  return (line) => {
    if (bucket.available(RATE, clock.now()) < 1) {
      omitted += 1;
      return;
    }
    bucket.take();
    log(omitted > 0 ? `${line} (${omitted} lines before it were left out)` : line);
    omitted = 0;
  };
};
