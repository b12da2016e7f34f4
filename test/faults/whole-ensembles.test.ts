import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { nothingLeft } from '../cases/nothing-left.ts'
import { startEnsemble } from './ensemble-driver.ts'
import { of } from './whole-logs.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('whole ensembles under faults', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository

  const make = async (env: Readonly<Record<string, string>>) => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_HEARTBEAT_TIMEOUT: '2s', ...env },
    })
  }
  beforeEach(() => {
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })

  test('ENS-09 fifty children on eight slots, a third of them killed once: all end once, never more than eight sandboxes', async () => {
    await make({ TUTTI_MAX_SANDBOXES: '8' })
    await stack.start()
    const ensemble = await startEnsemble(stack, {
      repository: repository.path,
      agents: Array.from(
        { length: 50 },
        (_, index) => `command:sh -c 'sleep 0.5; echo ${index} > file-${index}'`,
      ),
      spec: { strategy: 'merge' },
    })
    const bcIds = await ensemble.bcIds()
    const watch = watchSandboxes(stack)
    const victims = bcIds.filter((_, index) => index % 3 === 0)
    const killing = Promise.all(
      victims.map(async (bcId) => {
        await ensemble.waitFor(bcId, (event) => event.type === 'tool_call_started')
        return watch.kill()
      }),
    )
    const end = await ensemble.end()
    const killed = (await killing).filter(Boolean).length
    watch.stop()
    expect(killed).toBeGreaterThan(3)
    expect(watch.most()).toBeLessThanOrEqual(8)
    expect(end.attempts).toHaveLength(50)
    expect(end.reason).toBe('completed')
    expect(end.attempts.map(({ reason }) => reason)).toEqual(Array.from({ length: 50 }, () => 'completed'))
    expect(Object.keys(repository.tree(end.synthesis!.commit))).toHaveLength(51)
    const children = of(await ensemble.events(), 'child').map(({ child }) => child)
    expect(children.some(({ queuePosition }) => queuePosition !== undefined && queuePosition > 10)).toBe(true)
    const ends = children.filter(({ status, commit }) => status === 'IDLE' && commit)
    expect(ends.map(({ bcId }) => bcId).toSorted()).toEqual(bcIds.toSorted())
    await nothingLeft(stack)
  })

  test('Ctrl-C of run stops and checkpoints, a second one kills; either way nothing is left', async () => {
    await make({ TUTTI_MAX_SANDBOXES: '2' })
    const agent = `command:sh -c 'echo kept > kept.txt; (trap "" TERM; sleep 614) & echo up; sleep 615'`
    const sleepers = () => stack.sandboxProcesses().filter((line) => /^\d+ sleep 615/.test(line))
    const args = ['run', 'wait', '--repo', repository.path, '--agents', '2', '--agent', agent]
    const once = stack.cli(args)
    await vi.waitFor(() => expect(sleepers()).toHaveLength(2), 60_000)
    once.process.kill('SIGINT')
    const stopped = await once.done
    expect(stopped.code).toBe(2)
    expect(stopped.stdout).toContain('stopped_by_user')
    await nothingLeft(stack)

    const twice = stack.cli(args)
    await vi.waitFor(() => expect(sleepers()).toHaveLength(2), 60_000)
    twice.process.kill('SIGINT')
    twice.process.kill('SIGINT')
    expect((await twice.done).code).toBe(130)
    await vi.waitFor(() => expect(stack.sandboxProcesses()).toEqual([]), 5000)
  })
})

/** Counts the living sandboxes all the time, and kills one of them when asked. */
function watchSandboxes(stack: TuttiStack) {
  let most = 0
  // One agent server each; bubblewrap's own processes carry the same words.
  const servers = () =>
    stack.sandboxProcesses().filter((line) => line.includes('agent-server.mjs') && !line.includes('bwrap'))
  const timer = setInterval(() => {
    most = Math.max(most, servers().length)
  }, 100)
  return {
    most: () => most,
    stop: () => clearInterval(timer),
    /** SIGKILL of an agent server, and with it of its sandbox; false when none lives just now. */
    kill(): boolean {
      const [victim] = servers()
      if (!victim) return false
      try {
        process.kill(Number.parseInt(victim, 10), 'SIGKILL')
        return true
      } catch {
        return false
      }
    },
  }
}
