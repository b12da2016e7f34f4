import { Context } from '@temporalio/activity'
import type { Activities, ChildEnd, RecordPhase, RecordState, WorkflowEvent } from '@tutti/activities'

type Name = keyof Activities
type Body<N extends Name> = (
  input: Parameters<Activities[N]>[0],
  call: number,
) => Promise<Awaited<ReturnType<Activities[N]>>>

/** A started activity that waits for the test. */
export interface HeldCall<N extends Name> {
  readonly input: Parameters<Activities[N]>[0]
  finish(value: Awaited<ReturnType<Activities[N]>>): void
  fail(error: Error): void
}

/** Activities that do nothing but remember, unless the test says otherwise. */
export interface StubActivities {
  /** Where the activities are, host and all. */
  readonly taskQueue: string
  readonly activities: Activities
  /** Names of the activities, in the order in which they began. */
  readonly calls: { readonly name: Name; readonly input: unknown }[]
  /** Replaces the body of one activity. */
  on<N extends Name>(name: N, body: Body<N>): void
  /** Lets the next calls of an activity wait; answers with each as it begins. A cancel ends them as cancelled. */
  hold<N extends Name>(name: N): () => Promise<HeldCall<N>>
  callsOf(name: Name): number
  /** Events of an agent's log, in order. */
  events(bcId: string): WorkflowEvent[]
  /** What was recorded for an agent last. */
  recorded(bcId: string): RecordState | undefined
  phases(ensembleId: string): RecordPhase[]
}

/** Ends as cancelled when the workflow cancels the running activity. */
export async function untilCancelled(): Promise<never> {
  const beat = setInterval(() => Context.current().heartbeat(), 50)
  try {
    return await Context.current().cancelled
  } finally {
    clearInterval(beat)
  }
}

const names = [
  'recordState',
  'admit',
  'releaseLease',
  'provisionSandbox',
  'runTurn',
  'checkpointTurn',
  'checkAttempt',
  'releaseSandbox',
  'recordAttempt',
  'deliverAgent',
  'recordPhase',
  'gather',
  'combine',
  'verify',
  'deliver',
] as const satisfies readonly Name[]

/** One set of activities for a worker that several tests share: each goes to the stubs of its agent or ensemble. */
export function routeActivities(stubsOf: (id: string) => StubActivities | undefined): Activities {
  const route = (name: Name) => (input: { bcId?: string; ensembleId?: string }) => {
    const stubs = stubsOf(input.bcId ?? input.ensembleId ?? '')
    if (!stubs) throw new Error(`nobody answers ${name} for ${JSON.stringify(input)}`)
    return (stubs.activities[name] as (input: unknown) => Promise<unknown>)(input)
  }
  return Object.fromEntries(names.map((name) => [name, route(name)])) as unknown as Activities
}

export function createStubActivities(taskQueue: string): StubActivities {
  const calls: StubActivities['calls'] = []
  const bodies = new Map<Name, (input: never, call: number) => Promise<unknown>>()
  const states: RecordState[] = []
  const phases: RecordPhase[] = []

  const defaults: Activities = {
    async recordState(input) {
      const last = states.filter((known) => known.runId === input.runId).at(-1)
      if (input.sequence !== (last?.sequence ?? 0) + 1)
        throw new Error(`sequence ${input.sequence} out of order`)
      states.push(input)
    },
    admit: async () => ({ hostQueue: taskQueue }),
    releaseLease: async () => {},
    provisionSandbox: async () => {},
    runTurn: async () => ({ reason: 'completed', failed: false }),
    checkpointTurn: async () => ({ commit: 'c0ffee', filesChanged: 1 }),
    checkAttempt: async () => ({ exitCode: 0 }),
    releaseSandbox: async () => {},
    recordAttempt: async () => {},
    deliverAgent: async () => ({ outcome: 'delivered' }),
    async recordPhase(input) {
      const last = phases.filter((known) => known.runId === input.runId).at(-1)
      if (input.sequence !== (last?.sequence ?? 0) + 1)
        throw new Error(`sequence ${input.sequence} out of order`)
      phases.push(input)
    },
    async gather({ children }) {
      const good = children.filter((child) => child.status === 'IDLE' && child.reason === 'completed')
      const unchanged = children.filter((child) => child.reason === 'nothing_to_deliver').length
      const alternatives = good.length > 0 ? [good.map(({ bcId }: ChildEnd) => bcId)] : []
      return { candidates: good.length, unchanged, alternatives, additions: [] }
    },
    combine: async ({ attempts }) => ({
      commit: `combined-${attempts.length}`,
      conflicts: 0,
      reportBlobId: `sha256_${'0'.repeat(64)}`,
    }),
    verify: async () => ({ exitCode: 0 }),
    deliver: async () => ({ outcome: 'delivered' }),
  }

  const activities = Object.fromEntries(
    names.map((name) => [
      name,
      (input: never) => {
        calls.push({ name, input })
        const body = bodies.get(name) ?? defaults[name]
        return (body as (input: never, call: number) => Promise<unknown>)(input, callsOf(name))
      },
    ]),
  ) as unknown as Activities
  const callsOf = (name: Name) => calls.filter((call) => call.name === name).length

  return {
    taskQueue,
    activities,
    calls,
    callsOf,
    on(name, body) {
      bodies.set(name, body as (input: never, call: number) => Promise<unknown>)
    },
    hold: <N extends Name>(name: N) => {
      const begun: HeldCall<N>[] = []
      const waiting: ((call: HeldCall<N>) => void)[] = []
      bodies.set(name, (input: never) => {
        const { promise, resolve, reject } = Promise.withResolvers<unknown>()
        const call: HeldCall<N> = { input, finish: resolve, fail: reject }
        const taker = waiting.shift()
        if (taker) taker(call)
        else begun.push(call)
        return Promise.race([promise, untilCancelled()])
      })
      return () =>
        new Promise<HeldCall<N>>((resolve) => {
          const call = begun.shift()
          if (call) resolve(call)
          else waiting.push(resolve)
        })
    },
    events: (bcId) => states.filter((state) => state.bcId === bcId).flatMap((state) => state.events),
    recorded: (bcId) => states.findLast((state) => state.bcId === bcId),
    phases: (ensembleId) => phases.filter((phase) => phase.ensembleId === ensembleId),
  }
}
