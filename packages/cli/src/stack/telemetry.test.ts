import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { startTelemetry } from './telemetry.ts'

/** Starts with every load recorded, and says what of OpenTelemetry was among them. */
const probe = (modules: readonly string[]) => `
  import { registerHooks } from 'node:module'
  const loaded = []
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context) } })
  for (const url of ${JSON.stringify(modules)}) await import(url)
  const { startTelemetry } = await import(${JSON.stringify(import.meta.resolve('./telemetry.ts'))})
  const telemetry = await startTelemetry(process.env)
  console.log(JSON.stringify({ on: telemetry !== undefined, loaded: loaded.filter((url) => /opentelemetry/.test(url)) }))
  await telemetry?.stop()
`

async function start(modules: readonly string[], env: Readonly<Record<string, string>>) {
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith('OTEL_'))
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', probe(modules)],
    {
      env: { ...Object.fromEntries(clean), ...env },
    },
  )
  const { on, loaded } = JSON.parse(stdout) as { on: boolean; loaded: string[] }
  return { on, sdk: loaded.filter((url) => !/@opentelemetry\/api\//.test(url)).length > 0 }
}

test('nothing set: no traces, and nothing of the SDK is loaded', async () => {
  expect(await start([import.meta.resolve('./create-parts.ts')], {})).toEqual({ on: false, sdk: false })
})

test.each([
  { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
  { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:1/v1/traces' },
  { OTEL_TRACES_EXPORTER: 'otlp' },
])('%o: traces', async (env) => {
  expect(await start([], env)).toEqual({ on: true, sdk: true })
})

test.each([
  { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
  { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
])('%o: none all the same', async (env) => {
  expect(await startTelemetry(env)).toBeUndefined()
})

test('an exporter that there is not is named', async () => {
  await expect(startTelemetry({ OTEL_TRACES_EXPORTER: 'zipkin' })).rejects.toMatchObject({
    code: 'invalid_argument',
    detail: { field: 'OTEL_TRACES_EXPORTER' },
  })
})
