import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const TELEMETRY = 'test/resilience/*telemetry.test.ts';
const common = { setupFiles: ['test/fixtures/mutate-setup.ts'] };

/** A mutant's run ends with the first test that fails: the long simulations come last. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      moduleId.includes('.mutants.') ? 0 : moduleId.includes('adaptive-limit.') ? 2 : 1;
    return files.toSorted((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}

/** The fast in-process tests of `src/resilience`, as `npm run mutate` runs them; see docs/mutation.md. */
export default defineConfig({
  test: {
    sequence: { sequencer: QuickFirst },
    projects: [
      {
        // One worker for all files of a run loads the modules once: nearly twice as fast.
        test: {
          ...common,
          name: 'shared',
          isolate: false,
          include: ['test/resilience/**/*.test.ts', 'test/docs.test.ts'],
          exclude: [
            TELEMETRY,
            'test/resilience/pipeline-upstream.test.ts',
            'test/resilience/minor-collections.test.ts',
          ],
        },
      },
      {
        // Reads what every breaker and bulkhead of the process reports, so it needs its own.
        test: { ...common, name: 'telemetry', include: [TELEMETRY] },
      },
    ],
  },
});
