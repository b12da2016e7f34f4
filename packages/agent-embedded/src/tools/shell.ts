import { z } from 'zod'
import { createCappedText } from '../capped-text.ts'
import { defineTool } from './tool.ts'

/** Long enough for a test suite, short enough that a forgotten server does not hold the turn. */
const defaultTimeoutSeconds = 600

/** What the model reads of the output; the log has more of it, its blob all. */
const maxModelChars = 16 << 10

export const shellTool = defineTool({
  name: 'shell',
  description:
    'Runs a command with `sh -c` in the root of the workspace and returns its exit code and output (the middle of a long output is left out). No terminal and no input.',
  input: z.object({
    command: z.string().min(1),
    timeoutSeconds: z.number().int().positive().max(7200).optional(),
  }),
  async *run({ command, timeoutSeconds }, { host, callId, signal, clock }) {
    const started = clock.monotonic()
    const output = createCappedText(maxModelChars)
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
    yield { type: 'shell_output_delta', callId, event: { case: 'start', command } }
    const run = host.exec(
      {
        argv: ['sh', '-c', command],
        env: { CI: '1' },
        timeoutMs: (timeoutSeconds ?? defaultTimeoutSeconds) * 1000,
      },
      signal,
    )
    try {
      for (;;) {
        const step = await run.next()
        if (!step.done) {
          const { stream, bytes } = step.value
          const data = decoders[stream].decode(bytes, { stream: true })
          if (data === '') continue
          output.push(data)
          yield { type: 'shell_output_delta', callId, event: { case: stream, data } }
          continue
        }
        for (const stream of ['stdout', 'stderr'] as const) {
          const data = decoders[stream].decode()
          if (data === '') continue
          output.push(data)
          yield { type: 'shell_output_delta', callId, event: { case: stream, data } }
        }
        const { code, signal: name, timedOut } = step.value
        const ending = { code, ...(name === undefined ? {} : { signal: name }) }
        yield { type: 'shell_output_delta', callId, event: { case: 'exit', ...ending } }
        return {
          ok: code === 0,
          value: {
            exitCode: code,
            ...(name === undefined ? {} : { signal: name }),
            ...(timedOut ? { timedOut } : {}),
            durationMs: Math.round(clock.monotonic() - started),
            output: output.text(),
          },
        }
      }
    } finally {
      // The reader may leave in the middle; then the command must not stay.
      await run.return({ code: null, timedOut: false })
    }
  },
})
