import type { HostExecExit, HostExecOutput } from '@tutti/agent'
import type { AgentServer } from '@tutti/agent-server'
import { SpanStatusCode, context, trace } from '@opentelemetry/api'
import { TuttiError } from '@tutti/core'
import { emitSpan, inSpan } from './span.ts'

/**
 * An agent server whose calls are spans below the activity that makes them. Counts and exit codes only: command lines, paths and
 * output are the agent's.
 */
export function traceAgentServer(server: AgentServer, now: () => number): AgentServer {
  const traced =
    (capture: AgentServer['capture']): AgentServer['capture'] =>
    async (sink, signal) => {
      const above = trace.getActiveSpan()?.spanContext()
      const from = now()
      const summary = await capture(sink, signal)
      // There is one every two seconds while an agent works; most find nothing.
      if (summary.changes > 0 && above)
        emitSpan({
          name: 'agent-server capture',
          from,
          to: now(),
          attributes: { changes: summary.changes, entries: summary.entries },
          parent: above,
        })
      return summary
    }
  return {
    ...server,
    hydrate: (request, signal) =>
      inSpan('agent-server hydrate', { wordOf }, async (span) => {
        const summary = await server.hydrate(request, signal)
        span.setAttributes({ changes: request.changes.length, entries: summary.entries })
        return summary
      }),

    async *exec(request, signal): AsyncGenerator<HostExecOutput, HostExecExit> {
      // A generator cannot run inside a callback, and nothing below it starts spans.
      const span = trace.getTracer('@tutti/worker').startSpan('agent-server exec', {}, context.active())
      try {
        const exit = yield* server.exec(request, signal)
        if (exit.code !== null) span.setAttribute('exit_code', exit.code)
        return exit
      } catch (thrown) {
        span.setStatus({ code: SpanStatusCode.ERROR, message: wordOf(thrown) })
        throw thrown
      } finally {
        span.end()
      }
    },

    capture: traced(server.capture),
    captureHinted: traced(server.captureHinted),
  }
}

const wordOf = (thrown: unknown) => TuttiError.from(thrown).code
