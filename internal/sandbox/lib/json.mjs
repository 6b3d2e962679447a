// JSON as Solana's nodes write it: u64 fields are numbers, also above 2^53.

/**
 * Encodes a value. A bigint becomes a number without a point; undefined
 * properties are left out, as JSON.stringify does.
 * @param {unknown} value
 * @returns {string}
 */
export function encode(value) {
  switch (typeof value) {
    case 'bigint':
      return value.toString();
    case 'string':
      return JSON.stringify(value);
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? `[${value.map(encode).join(',')}]` : encodeObject(value);
    case 'number':
    case 'boolean':
      return JSON.stringify(value);
    default:
      return 'null';
  }
}

function encodeObject(object) {
  let text = '';
  for (const key of Object.keys(object)) {
    if (object[key] === undefined) continue;
    text += `${text === '' ? '' : ','}"${key}":${encode(object[key])}`;
  }
  return `{${text}}`;
}
