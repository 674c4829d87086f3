"""Which proxy stands between this machine and an endpoint: the environment's, and none for this machine itself."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from prefixguard.errors import ConfigError


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine: 127.0.0.0/8 in any spelling, ::1, localhost and names below it.

    >>> [is_loopback(f"http://{host}/v1") for host in ("127.8.0.1:80", "[::1]", "localhost.", "127.1", "127.0.0.1.org")]
    [True, True, True, True, False]
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(host))  # as the system reads it: 127.1, 0x7f000001
        except (OSError, ValueError):
            return False
    mapped = getattr(address, "ipv4_mapped", None)
    return any(one is not None and (one.is_loopback or one.is_unspecified) for one in (address, mapped))


def proxy_for(url: str) -> str | None:
    """The proxy that requests to this URL go through, with its credentials; None for none.

    HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY name it, in small letters too. No request to this machine goes
    through one.
    """
    parts = urlsplit(url)
    if is_loopback(url):
        return None
    proxies = getproxies_environment()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return named if "://" in named else f"http://{named}"


def shown_proxy(url: str) -> str | None:
    """Host and port of the proxy that requests to this URL go through, without credentials; None for none."""
    named = proxy_for(url)
    return None if named is None else urlsplit(named).netloc.rpartition("@")[2]


def certificates() -> ssl.SSLContext | bool:
    """Whom a server is trusted by: the certificates that SSL_CERT_FILE or SSL_CERT_DIR name; True for the usual ones.

    ConfigError where they cannot be read.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        return True
    try:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f"SSL_CERT_FILE {file or folder}: the certificates cannot be read ({exc}). Name a file in PEM form, or "
            "unset it."
        ) from exc
