import { describe, expect, test } from 'vitest'
import { listSources, readSource } from './sources.ts'
import { findUnsafeWorkflowCode } from './workflow-state.ts'

describe('the rule refuses', () => {
  test.each([
    'let counter = 0',
    'export let counter = 0',
    'var x = 1',
    'const seen = new Map<string, number>()',
    'export const seen: Set<string> = new Set()',
    'const started = Date.now()',
    'export const started = new Date()',
    'export function f() {\n  return performance.now()\n}',
    'export function f() {\n  return Temporal.Now.instant()\n}',
    'export const f = () => Math.random()',
    'globalThis.Date = FakeDate',
  ])('%s', (source) => {
    expect(findUnsafeWorkflowCode(source)).toHaveLength(1)
  })
})

describe('the rule accepts', () => {
  test.each([
    "const proxies = proxyActivities({ startToCloseTimeout: '1 minute' })",
    'export async function f() {\n  let turns = 0\n  turns += 1\n}',
    '// Date.now() would be replaced by the sandbox\nexport const x = 1',
    "export const text = 'new Date(s) of delivery'",
    'export function f() {\n  return Date.now()\n}',
  ])('%s', (source) => {
    expect(findUnsafeWorkflowCode(source)).toEqual([])
  })
})

test('workflow sources have no module-level mutable state and no global clock', async () => {
  const names = (await listSources()).filter((name) =>
    /^packages\/workflows\/src\/.*(?<!\.test)\.ts$/.test(name),
  )
  expect(names).not.toEqual([])
  const found = await Promise.all(
    names.map(async (name) =>
      findUnsafeWorkflowCode((await readSource(name)) ?? '').map((finding) => ({ name, ...finding })),
    ),
  )
  expect(found.flat()).toEqual([])
})
