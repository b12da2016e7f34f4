import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startEnsemble } from '../faults/ensemble-driver.ts'
import { expectEndsOnce, expectNumbered, of } from '../faults/whole-logs.ts'
import { nothingLeft } from './nothing-left.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'

const temporalPath = inject('temporalServer')
const slots = 8
const children = 50
describe.skipIf(!temporalPath)('the width of an ensemble', { timeout: 240_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: `${slots}` } })
    await stack.start()
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  test('ENS-09 fifty children, eight sandboxes, every third child killed once', async () => {
    const agents = Array.from(
      { length: children },
      (_, index) => `command:sh -c 'echo ${index} > f${index}; sleep ${isDoomed(index) ? 1.5 : 0.3}'`,
    )
    await expect(
      startEnsemble(stack, { repository: repository.path, agents: [...agents, 'command:true'] }),
    ).rejects.toMatchObject({ code: 'invalid_argument', message: expect.stringContaining('50') as string })

    const ensemble = await startEnsemble(stack, { repository: repository.path, agents })
    const childIds = (await ensemble.bcIds()) as string[]
    const doomed = new Set(childIds.keys().filter(isDoomed))
    let most = 0
    const watch = setInterval(() => {
      most = Math.max(most, sandboxesOf(stack).length)
      const pids = sandboxPids(stack)
      const running = stack.sandboxProcesses()
      for (const index of doomed) {
        const pid = pids.get(childIds[index]!)
        // Half of them during their boot, the others while their agent runs.
        const isDue = index % 2 === 0 || running.some((line) => line.includes(`> f${index};`))
        if (pid === undefined || !isDue) continue
        doomed.delete(index)
        killAll([`${pid}`])
      }
    }, 50)
    const { reason, attempts, synthesis } = await ensemble.end().finally(() => clearInterval(watch))

    expect(reason).toBe('completed')
    expect(attempts.map((attempt) => attempt.reason)).toEqual(agents.map(() => 'completed'))
    expect(Object.keys(repository.tree(synthesis!.commit))).toHaveLength(children + 1)
    expect([...doomed]).toEqual([])
    expect(most).toBeGreaterThan(slots / 2)
    expect(most).toBeLessThanOrEqual(slots)
    const own = await ensemble.events()
    expectNumbered(own)
    const bcIds = await ensemble.bcIds()
    for (const bcId of bcIds) expectEndsOnce(own, bcId)
    expect(Math.max(...of(own, 'child').map(({ child }) => child.queuePosition ?? 0))).toBeGreaterThan(1)
    const logs = await Promise.all(bcIds.map((bcId) => ensemble.eventsOf(bcId)))
    expect(logs.flatMap((events) => of(events, 'turn_interrupted')).length).toBeGreaterThan(0)

    const connection = await Connection.connect({ address: stack.ready().temporal_address })
    const handle = new Client({ connection }).workflow.getHandle(`ensemble/${ensemble.ensembleId}`)
    expect((await handle.describe()).historyLength).toBeLessThan(2000)
    await connection.close()
    await nothingLeft(stack)
  })
})

function isDoomed(index: number): boolean {
  return index % 3 === 0
}

/** The process that carries the sandbox of each child, from what the worker keeps for its successor. */
function sandboxPids(stack: TuttiStack): Map<string, number> {
  const root = join(stack.dataDir, 'sandboxes')
  const pids = new Map<string, number>()
  for (const name of existsSync(root) ? readdirSync(root) : []) {
    if (!name.endsWith('.json')) continue
    try {
      const state = JSON.parse(readFileSync(join(root, name), 'utf8')) as {
        key: string
        main?: { pid: number }
      }
      if (state.main) pids.set(state.key.split('/')[0]!, state.main.pid)
    } catch {
      // Removed between the listing and the reading.
    }
  }
  return pids
}
