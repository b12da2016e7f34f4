import { TuttiError, type Clock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import { createAnswerFile } from './answer-file.ts'
import { buildCommandLine } from './command-line.ts'
import { createDirectiveSplitter, type OutputPiece } from './directive-splitter.ts'
import { writeHomeFile } from './home-file.ts'
import type { AgentHost, AgentSession, HostExecExit, TurnOutcome, TurnRequest } from './port.ts'
import { decodeEndedTurn, encodeEndedTurn } from './ended-turn.ts'
import { createTextTail } from './text-tail.ts'

/** Bytes of output that explain a failure, and of the last words; both limits stand in the port. */
const maxDetailBytes = 2 << 10
const maxSummaryBytes = 2 << 10

const continuedNote =
  'This task was started before and cut off. What was done so far is in the working directory. Look at it, then finish the task:\n\n'

interface CommandSessionDeps {
  readonly clock: Clock
  readonly bcId: string
  readonly command: string
  readonly host: AgentHost
  readonly exported?: Uint8Array
}

/**
 * One program per turn; nothing is remembered between turns but the workspace. The session that is exported says which turn's
 * program has ended and how, so that a turn that is cut off after it does not run the program a second time.
 */
export function createCommandSession(deps: CommandSessionDeps): AgentSession {
  const { clock, bcId, command, host } = deps
  const answers = createAnswerFile(host)
  let ended = deps.exported && decodeEndedTurn(deps.exported)

  async function* runTurn(turn: TurnRequest, signal: AbortSignal): AsyncGenerator<TaskEvent, TurnOutcome> {
    const { notice = '' } = turn
    const wasTold = notice === '' || ended?.notice === notice
    if (turn.continued && wasTold && ended?.turnId === turn.turnId) return ended.outcome
    const folder = `${host.home}/.tutti/${encodeURIComponent(turn.turnId)}`
    const promptFile = `${folder}/prompt`
    const prompt = new TextEncoder().encode(
      notice + host.news() + (turn.continued ? continuedNote : '') + turn.prompt,
    )
    const line = buildCommandLine(command, new TextDecoder().decode(prompt), promptFile)
    await writeHomeFile(host, promptFile, prompt, 'replace', signal)
    await answers.begin(`${folder}/answers`, signal)

    // Unique per run of the turn: a call that was cut off and one that is made again are two calls in the log.
    const callId = `call-${crypto.randomUUID()}`
    const started = clock.monotonic()
    // The words of the spec, not of the process: a prompt may be long, and it is in the log already.
    yield { type: 'tool_call_started', callId, toolName: 'shell', args: { command } }
    yield { type: 'shell_output_delta', callId, event: { case: 'start', command } }

    const tails = {
      stdout: createTextTail(maxDetailBytes),
      stderr: createTextTail(maxDetailBytes),
      words: createTextTail(maxSummaryBytes),
    }
    const splitter = createDirectiveSplitter()
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    const onStdout = function* (pieces: OutputPiece[]): Generator<TaskEvent> {
      for (const piece of pieces) {
        if ('text' in piece) {
          tails.stdout.push(piece.text)
          yield { type: 'shell_output_delta', callId, event: { case: 'stdout', data: piece.text } }
        } else if (piece.directive.type === 'agent_question') {
          yield { ...piece.directive, questionId: answers.open(turn.turnId, piece.directive.questionId) }
        } else {
          if (piece.directive.type === 'text_delta') tails.words.push(piece.directive.text)
          yield piece.directive
        }
      }
    }
    const onStderr = function* (text: string): Generator<TaskEvent> {
      if (text === '') return
      tails.stderr.push(text)
      yield { type: 'shell_output_delta', callId, event: { case: 'stderr', data: text } }
    }

    const stop = AbortSignal.any([signal, answers.failed])
    const run = host.exec(
      {
        argv: line.argv,
        env: {
          CI: '1',
          TUTTI_BC_ID: bcId,
          TUTTI_TURN_ID: turn.turnId,
          TUTTI_PROMPT_FILE: promptFile,
          TUTTI_ANSWERS: `${folder}/answers`,
        },
        ...(line.promptOnStdin ? { stdin: prompt } : {}),
      },
      stop,
    )
    let exit: HostExecExit | undefined
    let problem: TuttiError | undefined
    try {
      for (;;) {
        const step = await run.next()
        if (step.done) {
          exit = step.value
          break
        }
        const { stream, bytes } = step.value
        const text = decoders[stream].decode(bytes, { stream: true })
        yield* stream === 'stdout' ? onStdout(splitter.push(text)) : onStderr(text)
      }
    } catch (error) {
      problem = isNotFound(error) ? undefined : TuttiError.from(error)
      exit = { code: isNotFound(error) ? 127 : null, timedOut: false }
    } finally {
      // The reader may leave in the middle; then the program must not stay.
      await run.return({ code: null, timedOut: false })
    }
    yield* onStdout([...splitter.push(decoders.stdout.decode()), ...splitter.end()])
    yield* onStderr(decoders.stderr.decode())
    await answers.settled()
    const { code, signal: name } = exit
    const result = {
      exitCode: code,
      ...(name === undefined ? {} : { signal: name }),
      durationMs: Math.round(clock.monotonic() - started),
    }
    yield {
      type: 'shell_output_delta',
      callId,
      event: { case: 'exit', code, ...(name === undefined ? {} : { signal: name }) },
    }
    if (signal.aborted) {
      yield { type: 'tool_call_completed', callId, toolName: 'shell', outcome: 'cancelled', result }
      throw new TuttiError('cancelled', 'The agent was stopped.')
    }
    if (problem !== undefined && !answers.failed.aborted) throw problem
    const ok = code === 0
    const outcome = outcomeOf()
    await host.toolEnded(signal)
    // After the capture and before the event at which the session is exported: this end comes with its files.
    ended = { turnId: turn.turnId, outcome, ...(notice !== '' && { notice }) }
    yield { type: 'tool_call_completed', callId, toolName: 'shell', outcome: ok ? 'ok' : 'error', result }
    return outcome

    function outcomeOf(): TurnOutcome {
      const words = tails.words.text() || lastWords(tails.stdout.text())
      const summary = words === '' ? {} : { summary: words }
      if (ok) return { outcome: 'completed', ...summary }
      const detail = answers.failed.aborted
        ? `The answer could not be given to the program: ${TuttiError.from(answers.failed.reason).message}`
        : explain(line.argv[0] ?? '', exit!, tails.stderr.text() || tails.stdout.text())
      return { outcome: 'failed', detail, ...summary }
    }
  }

  return {
    runTurn,
    answer: (questionId, text) => answers.give(questionId, text),
    async exportSession() {
      return ended ? encodeEndedTurn(ended) : new Uint8Array()
    },
    async close() {},
  }
}

function isNotFound(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === 'ENOENT' || code === 'not_found'
}

function lastWords(text: string): string {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-20)
    .join('\n')
}

function explain(program: string, exit: HostExecExit, output: string): string {
  const tail = output === '' ? '' : `\n${output}`
  if (exit.code === 127) {
    return (
      `${program}, or a program that it calls, was not found in the sandbox. Give its folder with --mount, and name it by ` +
      `its full path or put its folder on PATH with --env PATH=….${tail}`
    )
  }
  if (exit.code === 126) return `${program} is there but cannot be executed in the sandbox.${tail}`
  const how = exit.timedOut
    ? 'took too long and was ended'
    : exit.code === null
      ? `was ended by ${exit.signal ?? 'a signal'}`
      : `ended with exit code ${exit.code}`
  return `${program} ${how}.${tail}`
}
