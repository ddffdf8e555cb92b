import { defineConfig } from 'vitest/config';

/**
 * The drills that come with the package, each through the real command, one after the other:
 * they measure how a server reacts in time, and would disturb each other.
 */
export default defineConfig({
  test: {
    include: ['test/**/*.drill.ts'],
    fileParallelism: false,
    // Bounds against hanging, not measurements.
    testTimeout: 120_000,
  },
});
