import type { AgentId } from '@tutti/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agent, createFixture, gone, never, put, type Fixture } from './test-fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await createFixture()
})
afterAll(() => fixture.remove())

test('5,000 files: mirror, checkpoint, combine, diff and push each stay well under their limits', async () => {
  fixture.commitAll()
  const mirror = await fixture.mirrors.open(fixture.source, never)
  const root = await mirror.resolve('', never)
  const ref = 'refs/tutti/base/en-1'
  const all = Array.from({ length: 5000 }, (_, index) =>
    put(`dir${index % 50}/file${index}.ts`, `export const n = ${index}\n`),
  )
  const times: Record<string, number> = {}
  const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const started = performance.now()
    const result = await work()
    times[name] = Math.round(performance.now() - started)
    return result
  }
  const { commit: base } = await timed('commit all', () =>
    mirror.commit({ parent: root, changes: all, ref, message: 'm', atMs: 0 }, never),
  )
  expect(await timed('push all', () => mirror.push({ commit: base, branch: 'big' }, never))).toEqual({
    outcome: 'pushed',
  })
  await timed('open', () => fixture.mirrors.open(fixture.source, never))
  const attempts: { bcId: AgentId; commit: string }[] = []
  for (let index = 0; index < 8; index += 1) {
    const changes = [
      put(`dir${index}/file${index}.ts`, `export const n = '${index}'\n`),
      put(`new${index}`, 'x'),
      gone(`dir${index}/file${index + 50}.ts`),
    ]
    const request = { parent: base, changes, ref: `refs/tutti/agents/${index}`, message: 'm', atMs: 0 }
    attempts.push({
      bcId: agent(index),
      commit: (await timed('checkpoint', () => mirror.commit(request, never))).commit,
    })
  }
  const combined = await timed('combine 8', () =>
    mirror.combine({ base, attempts, ref: 'refs/tutti/c', message: 'm', atMs: 0 }, never),
  )
  expect(combined.conflicts).toEqual([])
  expect(await timed('count', () => mirror.countChanges(base, combined.commit, never))).toBe(24)
  await timed('diff', () => mirror.diff(base, combined.commit, 1 << 20, never))
  // Ten times what it takes on a busy two-core machine: this finds a wrong order of growth, not a slow day.
  expect(times['commit all']).toBeLessThan(10_000)
  for (const name of ['open', 'checkpoint', 'diff', 'count']) expect(times[name]).toBeLessThan(3000)
  expect(times['combine 8']).toBeLessThan(6000)
}, 60_000)
