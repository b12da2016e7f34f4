import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { followAgentEvents, followEnsemble, followEnsembleEvents, type TuttiClient } from '@tutti/client'
import type { AgentId, EnsembleId } from '@tutti/core'
import {
  EnsembleSpecSchema,
  Isolation,
  RepositorySourceSchema,
  type Ensemble,
  type ParallelAgentWorkflowStatusUpdate,
} from '@tutti/proto'
import { decodeOffset, type RunEvent } from '@tutti/protocol'
import type { TuttiStack } from '@tutti/testkit'
import { connect } from '../cases/connect.ts'

/** A stored event with its place in the log, from 1. */
export type Logged<E extends RunEvent = RunEvent> = E & { readonly sequence: number }

/** One ensemble, driven through the public API, over as many servers as it takes. */
export interface EnsembleDriver {
  readonly ensembleId: EnsembleId
  bcIds(): Promise<AgentId[]>
  get(): Promise<Ensemble>
  /** Follows it to its end, however often the server goes and comes back. */
  end(): Promise<Ensemble>
  /** Each status update, as a client that never gives up sees it. */
  updates(): Promise<ParallelAgentWorkflowStatusUpdate[]>
  events(): Promise<Logged[]>
  eventsOf(bcId: AgentId): Promise<Logged[]>
  /** Resolves with the first event of an agent that fits. */
  waitFor(bcId: AgentId, fits: (event: RunEvent) => boolean): Promise<Logged>
  /** Resolves with the first event of the ensemble's own log that fits. */
  waitForOwn(fits: (event: RunEvent) => boolean): Promise<Logged>
}

export interface StartEnsemble {
  readonly repository: string
  /** One for each child: `command:…`, or lines of a script for the deterministic brain. */
  readonly agents: readonly (string | readonly string[])[]
  readonly spec?: Omit<MessageInitShape<typeof EnsembleSpecSchema>, 'repository' | 'agents'>
  readonly idempotencyKey?: string
}

const never = new AbortController().signal
/** The whole pause between two servers must be bridged, and no more. */
const patience = { giveUpMs: 60_000 }

export async function requestOf(client: TuttiClient, request: StartEnsemble) {
  const { repository } = await client.repositories.addRepository({ path: request.repository })
  return {
    idempotencyKey: request.idempotencyKey ?? '',
    spec: create(EnsembleSpecSchema, {
      prompt: 'do it',
      sandbox: { isolation: Isolation.BUBBLEWRAP },
      strategy: 'merge',
      ...request.spec,
      repository: create(RepositorySourceSchema, {
        location: { case: 'registered', value: repository!.name },
      }),
      agents: request.agents.map((agent) =>
        typeof agent === 'string'
          ? { spec: agent }
          : {
              spec: 'embedded:scripted',
              promptSuffix: ['```tutti-script', ...agent, '```'].join('\n'),
            },
      ),
    } as MessageInitShape<typeof EnsembleSpecSchema>),
  }
}

export async function startEnsemble(stack: TuttiStack, request: StartEnsemble): Promise<EnsembleDriver> {
  const client = connect(stack)
  const { ensembleId } = await client.composers.startParallelAgentWorkflow(await requestOf(client, request))
  return driveEnsemble(stack, ensembleId as EnsembleId)
}

export function driveEnsemble(stack: TuttiStack, ensembleId: EnsembleId): EnsembleDriver {
  const source = async () => connect(stack)
  const updates = async () => {
    const all: ParallelAgentWorkflowStatusUpdate[] = []
    for await (const update of followEnsemble(source, { ensembleId, signal: never }, patience))
      all.push(update)
    return all
  }
  const driver: EnsembleDriver = {
    ensembleId,
    async bcIds() {
      const { ensemble } = await connect(stack).ensembles.getEnsemble({ ensembleId })
      return ensemble!.attempts.map(({ bcId }) => bcId as AgentId)
    },
    get: async () => (await connect(stack).ensembles.getEnsemble({ ensembleId })).ensemble!,
    updates,
    async end() {
      await updates()
      return driver.get()
    },
    events: () => all(ensembleId, followEnsembleEvents(source, { ensembleId, signal: never }, patience)),
    eventsOf: (bcId) => all(bcId, followAgentEvents(source, { bcId, signal: never }, patience)),
    waitFor: (bcId, fits) =>
      first(bcId, fits, (signal) => followAgentEvents(source, { bcId, follow: true, signal }, patience)),
    waitForOwn: (fits) =>
      first(ensembleId, fits, (signal) =>
        followEnsembleEvents(source, { ensembleId, follow: true, signal }, patience),
      ),
  }
  return driver
}

interface Line {
  readonly eventJson: string
  readonly offsetKey: string
}

const parse = (log: AgentId | EnsembleId, { eventJson, offsetKey }: Line): Logged => ({
  ...(JSON.parse(eventJson) as RunEvent),
  sequence: decodeOffset(log, offsetKey),
})

async function all(log: AgentId | EnsembleId, lines: AsyncIterable<Line>): Promise<Logged[]> {
  const events: Logged[] = []
  for await (const line of lines) events.push(parse(log, line))
  return events
}

async function first(
  log: AgentId | EnsembleId,
  fits: (event: RunEvent) => boolean,
  open: (signal: AbortSignal) => AsyncIterable<Line>,
): Promise<Logged> {
  const stop = new AbortController()
  try {
    for await (const line of open(stop.signal)) {
      const event = parse(log, line)
      if (fits(event)) return event
    }
  } finally {
    stop.abort()
  }
  throw new Error(`The stream of ${log} ended without the event.`)
}
