import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { agentInput, startTemporal, type TemporalForTests } from './world.ts'

const server = inject('temporalTestServer')
const hour = 3_600_000

/** One after the other: the server has one clock for all workflows. */
describe.skipIf(!server)('what takes hours, on a clock that jumps', () => {
  let temporal: TemporalForTests
  beforeAll(async () => {
    temporal = await startTemporal(server!, { timeSkipping: true })
  })
  afterAll(() => temporal?.close())

  test('an idle agent gives its sandbox up after its time of inactivity and its run returns; nothing of its state changes', () =>
    temporal.run(async ({ stubs, startAgent, env }) => {
      const input = agentInput()
      const before = await env.currentTimeMs()
      const agent = await startAgent({ ...input, timings: { ...input.timings, inactivityMs: 10 * hour } })
      expect(await agent.result()).toEqual({ bcId: agent.bcId, status: 'IDLE', reason: 'completed' })
      expect((await env.currentTimeMs()) - before).toBeGreaterThanOrEqual(10 * hour)
      expect(stubs.callsOf('releaseSandbox')).toBe(1)
      expect(stubs.recorded(agent.bcId)?.state).toMatchObject({ status: 'IDLE', queue: [] })
    }))
})
