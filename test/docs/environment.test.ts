import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { settings } from '@tutti/core'
import { expect, test } from 'vitest'
import { listSources, root } from '../lint/sources.ts'

/** Not for people: set by a process of ours for another one of ours. */
const internal = new Set(['TUTTI_PARENT_PID', 'TUTTI_TEST_CLI', 'TUTTI_TEST_TOTAL'])
/** What agents find in their own environment; docs/agents.md has it. */
const ofAgents = new Set(['TUTTI_ANSWERS', 'TUTTI_PROMPT_FILE'])

const text = readFileSync(join(root, 'docs/environment.md'), 'utf8')
const documented = new Set([...text.matchAll(/`\$?([A-Z][A-Z0-9_]{3,})[`/=]/g)].map(([, name = '']) => name))
const ofSettings = new Set<string>(Object.values(settings).map(({ env }) => env))

async function productSources(): Promise<string[]> {
  const paths = (await listSources()).filter(
    (path) =>
      /^(?:packages|services|scripts)\//.test(path) &&
      /\.m?[jt]s$/.test(path) &&
      !/\.test\.ts$|contract[^/]*\.ts$|\/(?:test|testkit|gen)\//.test(path),
  )
  return paths.map((path) => readFileSync(join(root, path), 'utf8'))
}

test('docs/environment.md names every variable that the program reads', async () => {
  const read = (await productSources()).flatMap((source) =>
    [...source.matchAll(/\benv(?:\[['"]([A-Z][A-Z0-9_]+)['"]\]|\.([A-Z][A-Z0-9_]+))/g)].map(
      ([, quoted, plain]) => quoted ?? plain ?? '',
    ),
  )
  expect(read).toContain('TUTTI_MODEL')
  const missing = read.filter(
    (name) => ![documented, ofSettings, internal, ofAgents].some((known) => known.has(name)),
  )
  expect([...new Set(missing)]).toEqual([])
})

test('docs/environment.md names no variable that nothing reads', async () => {
  const sources = [...(await productSources()), readFileSync(join(root, 'vitest.config.ts'), 'utf8')]
  sources.push(readFileSync(join(root, 'test/e2e/screenshots.ts'), 'utf8'))
  expect(documented.size).toBeGreaterThan(20)
  const unread = [...documented].filter((name) => !sources.some((source) => source.includes(name)))
  expect(unread).toEqual([])
})
