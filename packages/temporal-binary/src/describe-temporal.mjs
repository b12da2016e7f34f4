/** @typedef {import('./artifacts.mjs').Artifact} Artifact */

const PLACES = {
  TEMPORAL_ADDRESS: 'from TEMPORAL_ADDRESS',
  TEMPORAL_CLI_PATH: 'from TEMPORAL_CLI_PATH',
  TEMPORAL_TEST_SERVER_PATH: 'from TEMPORAL_TEST_SERVER_PATH',
  PATH: 'from PATH',
  cache: 'from the cache',
  download: 'downloaded just now',
  pypi: 'taken from its PyPI package just now',
}

/** @type {typeof import('./index.d.mts').describeTemporal} */
export function describeTemporal(found) {
  if (found.kind === 'missing') return found.message
  if (found.kind === 'address') return `running cluster at ${found.address} (${PLACES[found.source]})`
  return `${found.version} ${PLACES[found.source]} (${found.path})`
}

/**
 * @param {Artifact} artifact
 * @param {import('./index.d.mts').TemporalMissing['tried']} tried
 * @param {boolean} [needsPip]
 */
export function describeMissing(artifact, tried, needsPip = false) {
  const answers = tried.map(({ source, why }) => `  ${source}: ${why}`).join('\n')
  const ways = [
    needsPip && 'install pip (Debian and Ubuntu: sudo apt-get install python3-pip) and run this again',
    `set ${artifact.pathVariable} to a copy of it`,
    artifact.onPath && 'set TEMPORAL_ADDRESS to a running cluster',
    'run this again where the network reaches temporal.download or PyPI',
  ].filter((way) => typeof way === 'string')
  return `Cannot find ${artifact.title} (${artifact.version}). Asked, in this order:\n${answers}\nWays on: ${ways.join('; or ')}.`
}
