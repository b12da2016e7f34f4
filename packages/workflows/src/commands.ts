import type { AgentCommand, AgentState } from '@tutti/core'
import { agentStateKey, isRejection, limits, reduceAgent, turnPosition } from '@tutti/core'
import { ApplicationFailure, defineUpdate, setHandler } from '@temporalio/workflow'
import { agentUpdates, type CommandAnswer, type CommandRequest } from './contract.ts'

/** Shown to operators beside the update's name. Each takes {@link CommandRequest}; `tutti agent` sends the same. */
const descriptions: Readonly<Record<(typeof agentUpdates)[number], string>> = {
  follow_up: 'Gives the agent another prompt, after those that wait',
  interrupt: 'Ends the current turn and works on this prompt next',
  stop: 'Ends the current turn; with all, the waiting ones too',
  pause: 'Ends the current turn, keeps it for later, and takes nothing new',
  resume: 'Goes on after a pause, or opens an archived agent again',
  archive: 'Ends the current turn and puts the agent away',
  deliver: 'Pushes what the agent made and opens a pull request',
  recover:
    'Replaces the sandbox, whatever state it is in; with at, goes back to the workspace of that log position',
  expire: 'Ends the agent for good; its last commit stays',
}

/** What an agent's workflow does with an accepted command. */
export interface CommandSink {
  readonly state: () => AgentState
  /** The command was accepted and changed something: the new state, and what asked for it. */
  readonly accept: (next: AgentState, request: CommandRequest) => void
  /** The sandbox that a turn works in now; undefined when there is none to take away. */
  readonly inUse: () => number | undefined
  /** Answers of earlier requests, by request id, oldest first. */
  readonly seen: Map<string, CommandAnswer>
}

/**
 * Registers one synchronous update for each command of the state machine: the API's answer is the state machine's answer
 * (design §4). A refusal fails the update before it is accepted, with type `refused`; a repeated request id gets the first answer.
 */
export function handleCommands(sink: CommandSink): void {
  for (const name of agentUpdates) {
    setHandler(defineUpdate<CommandAnswer, [CommandRequest]>(name), (request) => answer(sink, request), {
      validator: (request) => {
        if (sink.seen.has(request.requestId)) return
        const next = reduceAgent(sink.state(), request.command)
        if (isRejection(next)) throw refused(next.message, next.state)
      },
      description: descriptions[name],
    })
  }
}

function answer(sink: CommandSink, request: CommandRequest): CommandAnswer {
  const first = sink.seen.get(request.requestId)
  if (first) return first
  const { command } = request
  const before = sink.state()
  const next = reduceAgent(before, command)
  if (isRejection(next)) throw refused(next.message, next.state)
  const turnId = 'turn' in command ? command.turn.turnId : ''
  const given: CommandAnswer = {
    state: agentStateKey(next),
    position: turnId ? turnPosition(next, turnId) : -1,
    turnId,
    ...endingOf(sink, command, before, next),
  }
  remember(sink.seen, request.requestId, given)
  if (next !== before || command.type === 'deliver' || command.type === 'recover') sink.accept(next, request)
  return given
}

function endingOf(
  sink: CommandSink,
  command: AgentCommand,
  before: AgentState,
  next: AgentState,
): Pick<CommandAnswer, 'endingTurnId' | 'incarnation'> {
  const incarnation = command.type === 'recover' && !before.ending ? sink.inUse() : undefined
  const endingTurnId = next.current?.turnId ?? ''
  if (incarnation !== undefined) return { endingTurnId, incarnation }
  return { endingTurnId: next.ending && !before.ending ? endingTurnId : '' }
}

function remember(seen: Map<string, CommandAnswer>, requestId: string, given: CommandAnswer): void {
  seen.set(requestId, given)
  for (const oldest of seen.keys()) {
    if (seen.size <= limits.maxSeenRequests) break
    seen.delete(oldest)
  }
}

function refused(message: string, state: string): ApplicationFailure {
  return ApplicationFailure.create({ message, type: 'refused', nonRetryable: true, details: [state] })
}
