import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/**
 * Writes what a run came to into the file that TUTTI_TEST_TOTAL names: passed and failed counts, and each skipped test
 * with its reason, and each that passed only when it was tried again. A file that could not be loaded and an error outside every test count as failed.
 */
export function createTotalReporter(path = process.env['TUTTI_TEST_TOTAL']): Reporter {
  return {
    onTestRunEnd(modules, unhandledErrors) {
      if (!path) return
      const counted = modules.map(count)
      writeFileSync(
        path,
        JSON.stringify({
          passed: counted.reduce((sum, { passed }) => sum + passed, 0),
          failed: counted.reduce((sum, { failed }) => sum + failed, unhandledErrors.length),
          skipped: counted.flatMap(({ skipped }) => skipped),
          flaky: counted.flatMap(({ flaky }) => flaky),
        }),
      )
    },
  }
}

function count(module: TestModule) {
  let passed = 0
  let failed = module.errors().length
  const skipped: { test: string; why: string }[] = []
  const flaky: string[] = []
  for (const suite of module.children.allSuites()) failed += suite.errors().length
  for (const test of module.children.allTests()) {
    const result = test.result()
    const name = `${module.relativeModuleId} > ${test.fullName}`
    if (test.diagnostic()?.flaky) flaky.push(name)
    if (result.state === 'passed') passed += 1
    else if (result.state === 'failed') failed += 1
    else {
      const why = 'note' in result && result.note ? result.note : 'no reason given'
      skipped.push({ test: name, why })
    }
  }
  return { passed, failed, skipped, flaky }
}
