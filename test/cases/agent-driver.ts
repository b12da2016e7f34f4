import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { TuttiClient } from '@tutti/client'
import {
  type AgentOptionsSchema,
  CloudAgentWorkflowStatus,
  FollowupMode,
  RepositorySourceSchema,
  Isolation,
  type Agent,
} from '@tutti/proto'
import type { RunEvent } from '@tutti/protocol'

/** A stored event with the position after it. */
export type Logged = RunEvent & { readonly offset: string }

/** One agent, driven through the public API as a client would. */
export interface AgentDriver {
  readonly bcId: string
  get(): Promise<Agent>
  /** `IDLE`, `ERROR`…, with `+paused` behind it. */
  state(): Promise<string>
  /** All events so far. */
  events(): Promise<Logged[]>
  /** Resolves with the first event that fits, stored or to come. */
  waitFor(fits: (event: RunEvent) => boolean): Promise<Logged>
  /** Resolves when an event that fits is stored, also between turns. */
  seen(fits: (event: RunEvent) => boolean): Promise<void>
  /** Resolves when the agent has come to rest after what it does now. */
  rest(): Promise<Agent>
  followUp(text: string, mode?: 'queue' | 'interrupt'): Promise<{ position: number; turnId: string }>
}

export interface StartAgent {
  readonly prompt: string
  readonly repository: string
  readonly agent: string
  readonly options?: MessageInitShape<typeof AgentOptionsSchema>
}

export async function startAgent(client: TuttiClient, request: StartAgent): Promise<AgentDriver> {
  const { repository } = await client.repositories.addRepository({ path: request.repository })
  const { agent } = await client.agents.createAgent({
    prompt: request.prompt,
    repository: create(RepositorySourceSchema, { location: { case: 'registered', value: repository!.name } }),
    options: {
      agent: { spec: request.agent },
      sandbox: { isolation: Isolation.BUBBLEWRAP },
      ...request.options,
    } as MessageInitShape<typeof AgentOptionsSchema>,
  })
  return driveAgent(client, agent!.bcId)
}

export function driveAgent(client: TuttiClient, bcId: string): AgentDriver {
  let newestTurn: string | undefined
  const driver: AgentDriver = {
    bcId,
    get: async () => (await client.agents.getAgent({ bcId })).agent!,
    async state() {
      const agent = await driver.get()
      return `${CloudAgentWorkflowStatus[agent.workflowStatus]}${agent.state?.paused ? '+paused' : ''}`
    },
    async events() {
      const events: Logged[] = []
      for await (const { eventJson, offsetKey } of client.agents.streamAgentEvents({ bcId })) {
        if (eventJson) events.push({ ...(JSON.parse(eventJson) as RunEvent), offset: offsetKey })
      }
      return events
    },
    async waitFor(fits) {
      const stop = new AbortController()
      const stream = client.agents.streamAgentEvents({ bcId, follow: true }, { signal: stop.signal })
      try {
        for await (const { eventJson, offsetKey } of stream) {
          if (!eventJson) continue
          const event = JSON.parse(eventJson) as RunEvent
          if (fits(event)) return { ...event, offset: offsetKey }
        }
      } finally {
        stop.abort()
      }
      throw new Error(`The stream of ${bcId} ended without the event.`)
    },
    async seen(fits) {
      while (!(await driver.events()).some(fits)) await new Promise((resolve) => setTimeout(resolve, 200))
    },
    async rest() {
      if (newestTurn)
        await driver.waitFor((event) => event.type === 'turn_ended' && event.turnId === newestTurn)
      for (;;) {
        const agent = await driver.get()
        const { RUNNING, UNSPECIFIED } = CloudAgentWorkflowStatus
        if (agent.workflowStatus !== RUNNING && agent.workflowStatus !== UNSPECIFIED) return agent
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    async followUp(text, mode = 'queue') {
      const { position, turnId } = await client.composers.addAsyncFollowupBackgroundComposer({
        bcId,
        followup: text,
        tutti: { mode: mode === 'queue' ? FollowupMode.QUEUE : FollowupMode.INTERRUPT },
      })
      newestTurn = turnId
      return { position, turnId }
    },
  }
  return driver
}

/** What the programs of these events have printed. */
export const shellOutput = (events: readonly RunEvent[]): string =>
  events
    .map((event) => (event.type === 'shell_output_delta' && 'data' in event.event ? event.event.data : ''))
    .join('')
