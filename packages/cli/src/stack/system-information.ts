import { arch, platform } from 'node:os'
import { settings, type SettingName } from '@tutti/core'
import { CheckStatus } from '@tutti/proto'
import type { SystemInformation } from '@tutti/api'
import { sandboxCheck } from '../doctor/sandbox-check.ts'
import { version } from '../version.ts'
import { dataFormat } from './data-folder.ts'
import { describeBlobs } from './open-blobs.ts'
import type { PartContext } from './parts.ts'

/** Names of settings whose values nobody is shown. */
const secret: readonly SettingName[] = ['server.api_keys']

const checkStatusOf = {
  ok: CheckStatus.OK,
  warning: CheckStatus.WARNING,
  failed: CheckStatus.FAILED,
} as const

/** What the server says of itself: which adapters run, what works here, and every setting. */
export function createSystemInformation(
  context: PartContext & { readonly mode: 'embedded' | 'serve' },
): SystemInformation {
  const { dataDir, config, env, temporal, mode } = context
  const startedAt = BigInt(Math.floor(Date.now() / 1000))

  const info = async () => ({
    version,
    nodeVersion: process.version,
    platform: `${platform()}-${arch()}`,
    dataDir,
    dataFormat,
    mode,
    startedAt: { seconds: startedAt },
    components: [
      { name: 'temporal', adapter: 'cluster', address: temporal.address, origin: temporal.origin },
      ...(temporal.uiAddress === undefined
        ? []
        : [
            { name: 'temporal_ui', adapter: 'cluster', address: temporal.uiAddress, origin: temporal.origin },
          ]),
      { name: 'event_log', adapter: 'sqlite', address: `${dataDir}/tutti.db`, origin: 'default' },
      { name: 'catalog', adapter: 'sqlite', address: `${dataDir}/tutti.db`, origin: 'default' },
      { name: 'blob_store', ...describeBlobs(dataDir, config), origin: 'configuration' },
      { name: 'forge', adapter: 'local', address: '', origin: 'default' },
      {
        name: 'sandbox',
        adapter: String(config['sandboxes.provider']),
        address: `${dataDir}/sandboxes`,
        origin: 'configuration',
      },
    ],
  })

  return {
    info,
    async doctor() {
      const sandbox = await sandboxCheck(`${dataDir}/sandboxes`, config, env)
      return {
        checks: [{ ...sandbox, status: checkStatusOf[sandbox.status] }],
        system: await info(),
      }
    },
    async configuration() {
      return {
        values: (Object.keys(settings) as SettingName[]).map((name) => ({
          name,
          value: secret.includes(name) && config[name] !== '' ? '(set)' : String(config[name]),
          unit: settings[name].unit,
          defaultValue: String(settings[name].default),
          environmentVariable: settings[name].env,
          description: settings[name].why,
        })),
      }
    },
  }
}
