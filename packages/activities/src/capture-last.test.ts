import type { AgentServer } from '@tutti/agent-server'
import { TuttiError, type AgentId } from '@tutti/core'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { describe, expect, test } from 'vitest'
import { captureLast } from './capture-last.ts'
import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'

const bcId = 'bc-0191f3a0-0000-7000-8000-000000000001' as AgentId
const soonMs = 20
const neverMs = 3_600_000

/** A session whose agent server never answers until it is killed. */
function silentSession(commands: readonly RunEvent[], limits: Partial<ActivityDeps> = {}) {
  const broken = Promise.withResolvers<never>()
  broken.promise.catch(() => {})
  const destroyed: string[] = []
  const drain = new AbortController()
  const server: Pick<AgentServer, 'kill'> = {
    kill: async () => broken.reject(new TuttiError('unavailable', 'The agent server is gone.')),
  }
  const session = {
    bcId,
    server,
    sandbox: { ref: { provider: 'local', key: bcId, id: 'x' }, limitHit: () => undefined },
    workspace: { capture: () => broken.promise },
    controller: new AbortController(),
    turnFrom: 0,
    stopped: false,
    killed: false,
  } as unknown as HostSession
  const deps = {
    eventLog: {
      async read(_log: unknown, from: number, _options: unknown, signal: AbortSignal) {
        if (from === 0) return { records: commands.map(encodeRunEvent), next: 1 }
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        )
      },
    },
    sandboxes: { destroy: async ({ id }: { id: string }) => void destroyed.push(id) },
    log: { info() {}, warn() {} },
    draining: drain.signal,
    captureTimeoutMs: neverMs,
    stopAnswerMs: soonMs,
    ...limits,
  } as unknown as ActivityDeps
  return { session, deps, destroyed, drain }
}

const cancelOf = (turnId: string): RunEvent => ({
  type: 'cancel',
  commandId: 'c',
  turnId,
  reason: 'stopped_by_user',
})

describe('the last capture of a sandbox that does not answer', () => {
  test('has little time in a turn that was stopped, which keeps its end', async () => {
    const { session, deps, destroyed } = silentSession([])
    session.stopped = true
    expect(await captureLast(deps, session, 't')).toEqual({ cut: false })
    expect(destroyed).toEqual(['x'])
    expect(await captureLast(deps, session, 't')).toEqual({ cut: false })
  })

  test('gives way to a stop of its turn that comes meanwhile', async () => {
    const { session, deps, destroyed } = silentSession([cancelOf('another'), cancelOf('t')])
    expect(await captureLast(deps, session, 't')).toEqual({ cut: true })
    expect(destroyed).toEqual(['x'])
  })

  test('gives way to a worker that drains', async () => {
    const { session, deps, drain } = silentSession([])
    const captured = captureLast(deps, session, 't')
    drain.abort()
    expect(await captured).toEqual({ cut: true })
  })

  test('loses the sandbox when its own time is over', async () => {
    const { session, deps, destroyed } = silentSession([], {
      captureTimeoutMs: soonMs,
      stopAnswerMs: neverMs,
    })
    await expect(captureLast(deps, session, 't')).rejects.toMatchObject({ type: 'sandbox_lost' })
    expect(destroyed).toEqual(['x'])
  })
})
