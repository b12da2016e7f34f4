import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti total '))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

test('counts what passed, failed and was skipped, a broken file and an error outside tests', async () => {
  const lines = [
    `import { describe, expect, test } from '${join(root, 'node_modules/vitest/dist/index.js')}'`,
    `test('good', () => { expect(1).toBe(1) })`,
    `test('bad', () => { expect(1).toBe(2) })`,
    `test('left out', (context) => { context.skip('needs a moon') })`,
    `test.todo('later')`,
  ]
  await writeFile(join(folder, 'a.test.mjs'), lines.join('\n'))
  await writeFile(join(folder, 'b.test.mjs'), `import './nothing.mjs'`)
  await writeFile(
    join(folder, 'c.test.mjs'),
    `${lines[0]}\ntest('also good', () => { setTimeout(() => { throw new Error('late') }, 0); return new Promise((r) => setTimeout(r, 50)) })`,
  )
  const reporter = join(root, 'test', 'total-reporter.ts')
  await writeFile(
    join(folder, 'vitest.config.mjs'),
    `import { createTotalReporter } from '${reporter}'\nexport default { test: { include: ['*.test.mjs'], reporters: [createTotalReporter()] } }`,
  )
  const path = join(folder, 'total.json')
  const run = promisify(execFile)(process.execPath, [vitest, 'run', '--root', folder], {
    env: { ...process.env, TUTTI_TEST_TOTAL: path },
  })
  await expect(run).rejects.toMatchObject({ code: 1 })
  expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({
    passed: 2,
    failed: 3,
    skipped: [
      { test: 'a.test.mjs > left out', why: 'needs a moon' },
      { test: 'a.test.mjs > later', why: 'no reason given' },
    ],
    flaky: [],
  })
})
