import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { runStack, type RunningStack } from './run-stack.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

interface Delivered {
  readonly branch: string
  readonly pull_request: { readonly number: number; readonly body: string }
}

describe.skipIf(!temporalPath)('deliveries after the database was rebuilt', { timeout: 120_000 }, () => {
  let running: RunningStack
  beforeAll(async () => {
    running = await runStack({})
    return running.remove
  })

  const deliver = (bcId: string) => running.stack.json<Delivered>(['agent', 'deliver', bcId])

  test('each agent gets a pull request of its own again, on the branch that it has', async () => {
    const { stack, repository } = running
    const agents = [await running.start('write: one.txt 1'), await running.start('write: two.txt 2')]
    const before: Delivered[] = []
    for (const agent of agents) {
      await agent.rest()
      before.push(await deliver(agent.bcId))
    }
    expect(before.map(({ pull_request: made }) => made.number)).toEqual([1, 2])
    await stack.stop()
    for (const name of readdirSync(stack.dataDir))
      if (name.startsWith('tutti.db')) rmSync(join(stack.dataDir, name))
    await stack.json(['admin', 'rebuild'])
    await stack.start()
    // In another order: each finds the other's number.
    for (const [at, number] of [
      [1, 1],
      [0, 2],
    ] as const) {
      const agent = driveAgent(connect(stack), agents[at]!.bcId)
      await agent.followUp(script('write: more.txt more'))
      await agent.rest()
      const { branch, pull_request: made } = await deliver(agent.bcId)
      expect({ branch, number: made.number }).toEqual({ branch: before[at]!.branch, number })
      expect(made.body).toContain(agent.bcId)
      expect(Object.keys(repository.tree(branch))).toContain('more.txt')
    }
  })
})
