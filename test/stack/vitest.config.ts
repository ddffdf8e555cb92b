import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** The tests that run against the real programs, by `npm run test:stack`. */
export default defineConfig({
  root: join(import.meta.dirname, '..', '..'),
  test: {
    include: ['test/stack/**/*.stack.ts'],
    fileParallelism: false,
    // Bounds against hanging, not measurements.
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
